"""From a choice of reproducer to one that is ready to run, identified by its content."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from bisect_env.errors import BadInput
from bisect_env.matrix import shipped
from bisect_env.matrix.cells import ReproducerChoice, digest
from bisect_env.trials.records import Reproducer


def prepare(choice: ReproducerChoice) -> Reproducer:
    """The reproducer that ``choice`` names, with a hash over all that its trials' outcomes depend on.

    Raises:
        BadInput: there is none of that name, a file cannot be read or two have one name, or a pattern is no regular
            expression.
    """
    return _own(choice) if choice.command else _shipped(choice)


def _shipped(choice: ReproducerChoice) -> Reproducer:
    known = shipped.reproducers()
    script = known.get(choice.name)
    if script is None:
        raise BadInput("reproducer", "", f"no reproducer is called {choice.name!r}", f"one of {', '.join(known)}")
    contents = [(path.name, _hash_of(path)) for path in sorted(_with_imports(script))]
    return Reproducer(choice.name, ("python", str(script)), (), digest(contents), protocol=True)


def _with_imports(script: Path) -> set[Path]:
    """The script and the modules beside it that it imports, theirs included."""
    found: set[Path] = set()
    waiting = [script]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            names = {name.partition(".")[0] for name in _imported(ast.parse(path.read_bytes()))}
            waiting += [beside for name in names if (beside := path.with_name(f"{name}.py")).is_file()]
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _own(choice: ReproducerChoice) -> Reproducer:
    names: set[str] = set()
    contents = []
    for number, path in enumerate(choice.files):
        place = f"files[{number}]"
        if path.name in names:
            raise BadInput("reproducer", place, f"a second file called {path.name}", "files with names of their own")
        names.add(path.name)
        try:
            contents += [(str(file.relative_to(path.parent)), _hash_of(file)) for file in _files_of(path)]
        except OSError as error:
            wanted = "a file or folder that can be read"
            raise BadInput("reproducer", place, f"{path}: {error.strerror}", wanted) from error
    for key, pattern in (("fail_pattern", choice.fail_pattern), ("skip_pattern", choice.skip_pattern)):
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise BadInput("reproducer", key, f"{pattern!r}: {error}", "a Python regular expression") from error
    content_hash = digest([choice.command, sorted(contents), choice.fail_pattern, choice.skip_pattern])
    return Reproducer(
        choice.name, choice.command, choice.files, content_hash, False, choice.fail_pattern, choice.skip_pattern
    )


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.is_file() and "__pycache__" not in file.parts]


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
