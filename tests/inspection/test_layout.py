"""Which modules a tree holds: as Python's own import finds them."""

from __future__ import annotations

import shutil
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, PathFinder
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.inspection.installed import look
from bisect_env.inspection.layout import Folder, Modules, module_name, module_path
from bisect_env.inspection.records import Held

NAMES = ("a", "b")
FILES = ("__init__.py", "a.py", "b.py", f"a{EXTENSION_SUFFIXES[0]}", "b.pyc", "data.txt", "not-a-name.py")
trees = st.sets(
    st.tuples(
        st.sampled_from(("one", "two")),
        st.lists(st.sampled_from(NAMES), max_size=2).map("/".join),
        st.sampled_from(FILES),
    ),
    max_size=9,
)


def by_python(name: str, roots: list[str]) -> Held | None:
    """What import would find; None for a package without ``__init__``, which it takes even where it is empty."""
    path: list[str] | None = roots
    for part in name.split("."):
        # Parents are not imported: each part is looked for as if it were a top-level one of its package's folders.
        spec = None if path is None else PathFinder.find_spec(part, path)
        if spec is None:
            return Held.ABSENT
        found = spec.submodule_search_locations
        path = None if found is None else list(getattr(found, "_path", found))
    if spec.loader is None or type(spec.loader).__name__ == "NamespaceLoader":
        return None
    source = not isinstance(spec.loader, ExtensionFileLoader) and (spec.origin or "").endswith(".py")
    return Held.SOURCE if source else Held.EXTENSION


@settings(max_examples=150)
@given(tree=trees)
def test_as_pythons_own_import(tmp_path_factory: object, tree: set[tuple[str, str, str]]) -> None:
    base = Path(tmp_path_factory.getbasetemp()) / "tree"  # type: ignore[attr-defined]
    shutil.rmtree(base, ignore_errors=True)
    for root in ("one", "two"):
        (base / root).mkdir(parents=True)
    for root, folder, file in tree:
        (base / root / folder).mkdir(parents=True, exist_ok=True)
        (base / root / folder / file).write_text("")
    roots = [str(base / "one"), str(base / "two")]
    PathFinder.invalidate_caches()
    modules = Modules(roots, look)
    for name in ("a", "b", "a.a", "a.b", "b.a", "b.b", "a.b.a", "a.b.b", "a.a.a"):
        expected, place = by_python(name, roots), modules.place(name)
        if expected is None:
            # A folder of data alone is none of ours; of modules it is a package without text.
            assert place.held is Held.ABSENT or (place.package and not place.file)
        else:
            assert place.held is expected, (name, tree)
            assert (place.held is Held.SOURCE) == bool(place.file)
    for package in ("", "a", "b"):
        prefix = package + "." if package else ""
        for last in modules.below(package):
            assert modules.place(prefix + last).held is not Held.ABSENT
        assert set(modules.below(package)) >= {
            last for last in NAMES if modules.place(prefix + last).held is not Held.ABSENT
        }


def test_libraries_are_no_modules_and_folders_of_them_no_packages() -> None:
    tree = {
        "": Folder(frozenset(), frozenset({"torch"})),
        "torch": Folder(frozenset({"__init__.py", "_C.so"}), frozenset({"lib", "include", "plugins"})),
        "torch/lib": Folder(frozenset({"libtorch.so", "libgomp.so.1"})),
        "torch/include": Folder(frozenset({"a.h"})),
        "torch/plugins": Folder(frozenset({"one.py"})),
    }
    modules = Modules(("",), lambda folder: tree.get(folder, Folder()))
    assert modules.below("torch") == ("_C", "plugins")
    assert modules.place("torch._C").held is Held.EXTENSION
    assert modules.place("torch.lib.libtorch").held is Held.ABSENT
    assert modules.place("torch.plugins.one").file == "torch/plugins/one.py"


def test_modules_elsewhere_and_without_a_file() -> None:
    tree = {
        "/src": Folder(frozenset({"single.py"}), frozenset({"pkg"})),
        "/src/pkg": Folder(frozenset({"__init__.py"})),
    }
    elsewhere = {"pkg": "/src/pkg", "single": "/src/single.py"}
    modules = Modules((), lambda folder: tree.get(folder, Folder()), elsewhere, ("sys",))
    assert modules.place("pkg").file == "/src/pkg/__init__.py"
    assert modules.place("single").file == "/src/single.py"
    assert modules.place("sys").held is Held.EXTENSION
    assert modules.below("") == ("pkg", "single", "sys")
    assert modules.place("").held is Held.ABSENT


@given(
    parts=st.lists(st.from_regex(r"[a-z_]+", fullmatch=True).filter(lambda p: p != "__init__"), min_size=1),
    package=st.booleans(),
)
def test_a_modules_path_gives_its_name(parts: list[str], package: bool) -> None:
    name = ".".join(parts)
    assert module_name(module_path(name, package)) == name


def test_paths_that_no_module_can_have() -> None:
    assert [module_name(path) for path in ("a/b.txt", "a-b/c.py", "__init__.py", "a/1.py")] == [None] * 4
