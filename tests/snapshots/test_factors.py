from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.environments.distributions import same_version
from bisect_env.snapshots.factors import Difference, Factor, Kind, Pins, difference
from bisect_env.snapshots.records import (
    CompileCache,
    Distribution,
    Snapshot,
    Target,
    Unread,
    in_order,
)
from bisect_env.snapshots.splitting import split

HOST = Target("3.12.4", "linux", "x86_64")


def snapshot(name: str, pins: Mapping[str, str | None], **known: object) -> Snapshot:
    distributions = in_order(Distribution(each, version) for each, version in pins.items())
    return Snapshot(name, "pip list", distributions, **known)  # type: ignore[arg-type]


def requiring(lines: Mapping[str, Sequence[str]]) -> Pins:
    """Requirements by ``name version``; of everything else nothing is required."""
    return lambda each: lines.get(f"{each.name} {each.version}", ())


def compared(
    good: Mapping[str, str | None], bad: Mapping[str, str | None], lines: Mapping[str, Sequence[str]]
) -> Difference:
    return difference(snapshot("A", good), snapshot("B", bad), requiring(lines), host=HOST)


def groups(found: Difference) -> dict[str, list[str]]:
    return {factor.name: [member.name for member in factor.members] for factor in found.factors}


def only(factors: Sequence[Factor]) -> Factor:
    (factor,) = factors
    return factor


# What moves together.


def test_each_change_is_a_factor_of_its_own_where_nothing_is_pinned() -> None:
    found = compared({"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "1", "c": "2"}, {})
    assert groups(found) == {"a": ["a"], "c": ["c"]}
    assert (found.factors[0].good, found.factors[0].bad) == ("1", "2")


def test_an_exact_pin_on_one_side_ties() -> None:
    found = compared({"a": "1", "b": "1"}, {"a": "2", "b": "2"}, {"a 1": ["b==1"], "a 2": ["b>=1"]})
    assert groups(found) == {"a": ["a", "b"]}


def test_a_wildcard_ties_only_what_it_excludes() -> None:
    inside = compared({"a": "1", "b": "1.0.1"}, {"a": "2", "b": "1.0.2"}, {"a 1": ["b==1.0.*"]})
    outside = compared({"a": "1", "b": "1.0.1"}, {"a": "2", "b": "1.1.0"}, {"a 1": ["b==1.0.*"]})
    assert (len(inside.factors), len(outside.factors)) == (2, 1)


def test_ranges_tie_where_they_exclude_both_mixes() -> None:
    good, bad = {"transformers": "4.52", "huggingface-hub": "0.36"}, {"transformers": "5.8", "huggingface-hub": "1.5"}
    both = compared(good, bad, {"transformers 4.52": ["huggingface-hub<1"], "transformers 5.8": ["huggingface-hub>=1"]})
    assert groups(both) == {"transformers": ["transformers", "huggingface-hub"]}
    one = compared(good, bad, {"transformers 4.52": ["huggingface-hub<1"]})
    assert len(one.factors) == 2


def test_the_two_mixes_may_be_excluded_by_either_of_the_two() -> None:
    found = compared({"a": "1", "b": "1"}, {"a": "2", "b": "2"}, {"a 1": ["b<2"], "b 1": ["a<2"]})
    assert groups(found) == {"a": ["a", "b"]}


def test_ties_are_transitive_and_the_group_is_named_after_what_requires_the_rest() -> None:
    lines = {"z 1": ["m==1"], "m 1": ["b==1"], "z 2": ["m==2"], "m 2": ["b==2"]}
    found = compared({"z": "1", "m": "1", "b": "1"}, {"z": "2", "m": "2", "b": "2"}, lines)
    assert groups(found) == {"z": ["z", "b", "m"]}


def test_a_pin_of_something_new_leaves_what_it_pins_to_be_flipped_alone() -> None:
    found = compared({"torch": "2.8"}, {"torch": "2.9", "sglang": "1"}, {"sglang 1": ["torch==2.9"]})
    assert groups(found) == {"sglang": ["sglang"], "torch": ["torch"]}


def test_extras_and_markers_decide_which_requirements_hold() -> None:
    good = {"torch": "1", "cuda-toolkit": "13.0.2", "nvidia-cublas": "13.1", "ruff": "1", "colour": "1"}
    bad = {"torch": "2", "cuda-toolkit": "13.0.3", "nvidia-cublas": "13.2", "ruff": "2", "colour": "2"}
    lines = {
        "torch 1": ["cuda-toolkit[cublas]==13.0.2; platform_system == 'Linux'", "ruff==1; extra == 'dev'"],
        "torch 2": ["cuda-toolkit[cublas]==13.0.3; platform_system == 'Linux'", "colour==2; sys_platform == 'win32'"],
        "cuda-toolkit 13.0.2": ["nvidia-cublas==13.1.*; extra == 'cublas'"],
        "cuda-toolkit 13.0.3": ["nvidia-cublas==13.2.*; extra == 'cublas'"],
    }
    found = compared(good, bad, lines)
    assert groups(found) == {
        "colour": ["colour"],
        "ruff": ["ruff"],
        "torch": ["torch", "cuda-toolkit", "nvidia-cublas"],
    }


def test_markers_are_those_of_each_sides_own_python() -> None:
    good = snapshot("A", {"a": "1", "b": "1"}, python="3.9.1")
    bad = snapshot("B", {"a": "2", "b": "2"}, python="3.12.1")
    old = difference(good, bad, requiring({"a 1": ["b==1; python_version < '3.10'"]}), host=HOST)
    new = difference(good, bad, requiring({"a 2": ["b==2; python_version < '3.10'"]}), host=HOST)
    assert [len(each.factors) for each in (old, new)] == [2, 3]  # Python is one of them.


def test_what_only_one_side_has_comes_with_what_requires_it_there() -> None:
    lines = {"hub 1": ["httpx"], "httpx 1": ["httpcore"], "httpcore 1": ["h11"]}
    found = compared({"hub": "0"}, {"hub": "1", "httpx": "1", "httpcore": "1", "h11": "1"}, lines)
    assert groups(found) == {"hub": ["hub", "h11", "httpcore", "httpx"]}
    assert found.followers == ()


def test_what_several_factors_require_follows_them() -> None:
    lines = {"a 2": ["new"], "b 2": ["new"], "new 1": ["newer"]}
    found = compared({"a": "1", "b": "1"}, {"a": "2", "b": "2", "new": "1", "newer": "1"}, lines)
    assert groups(found) == {"a": ["a"], "b": ["b"]}
    assert [(each.change.name, each.factors) for each in found.followers] == [
        ("new", ("a", "b")),
        ("newer", ("a", "b")),
    ]


def test_what_was_installed_for_its_own_sake_brings_its_own() -> None:
    lines = {"sglang 1": ["flashinfer"], "flashinfer 1": ["ninja"], "ninja 1": ["flashinfer"]}
    found = compared({}, {"sglang": "1", "flashinfer": "1", "ninja": "1"}, lines)
    assert groups(found) == {"sglang": ["sglang", "flashinfer", "ninja"]}


def test_two_new_ones_that_only_require_each_other_are_one() -> None:
    found = compared({}, {"b": "1", "a": "1"}, {"a 1": ["b"], "b 1": ["a"]})
    assert groups(found) == {"a": ["a", "b"]}


# Torch's family, where its requirements are not known.

FAMILY_GOOD = {
    "torch": "2.8.0+cu128",
    "triton": "3.4.0",
    "nvidia-cublas-cu12": "12.8.4",
    "nvidia-cudnn-cu12": "9.10.2",
    "torchvision": "0.23.0",
    "nvidia-ml-py": "12.560",
    "numpy": "2.0",
}
FAMILY_BAD = {
    "torch": "2.11.0+cu130",
    "pytorch-triton": "3.6.0",
    "nvidia-cublas": "13.1.0",
    "nvidia-cudnn-cu13": "9.19.0",
    "torchvision": "0.26.0",
    "nvidia-ml-py": "13.580",
    "numpy": "2.1",
}


def test_torchs_family_moves_together_by_name() -> None:
    found = difference(snapshot("A", FAMILY_GOOD), snapshot("B", FAMILY_BAD))
    assert groups(found) == {
        "numpy": ["numpy"],
        "nvidia-ml-py": ["nvidia-ml-py"],
        "torch": [
            *("torch", "torchvision", "nvidia-cublas", "nvidia-cublas-cu12"),
            *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "pytorch-triton", "triton"),
        ],
    }
    assert any("put together by name" in note for note in found.notes)


@pytest.mark.parametrize("stand_in", ["triton-windows", "pytorch-triton", "pytorch_triton_rocm"])
def test_what_stands_in_for_triton_is_of_the_family(stand_in: str) -> None:
    name = stand_in.replace("_", "-")
    found = difference(snapshot("A", {"torch": "2.8", name: "3.4"}), snapshot("B", {"torch": "2.9", name: "3.5"}))
    assert groups(found) == {"torch": ["torch", name]}


def test_the_rule_does_not_apply_where_the_requirements_are_known() -> None:
    found = compared(
        {"torch": "2.8", "triton": "3.4.0"}, {"torch": "2.9", "triton": "3.4.1"}, {"torch 2.8": ["triton"]}
    )
    assert groups(found) == {"torch": ["torch"], "triton": ["triton"]}


def test_a_group_is_split_into_libraries_under_either_name() -> None:
    found = difference(snapshot("A", FAMILY_GOOD), snapshot("B", FAMILY_BAD))
    torch = next(factor for factor in found.factors if factor.name == "torch")
    parts = {part.name: (part.good, part.bad) for part in split(torch)}
    assert parts == {
        "torch": ("2.8.0+cu128", "2.11.0+cu130"),
        "nvidia-cublas": ("nvidia-cublas-cu12 12.8.4", "nvidia-cublas 13.1.0"),
        "nvidia-cudnn": ("nvidia-cudnn-cu12 9.10.2", "nvidia-cudnn-cu13 9.19.0"),
        "torchvision": ("0.23.0", "0.26.0"),
        "triton": ("triton 3.4.0", "pytorch-triton 3.6.0"),
    }


def test_what_is_alone_cannot_be_split() -> None:
    factor = only(compared({"a": "1"}, {"a": "2"}, {}).factors)
    assert split(factor) == (factor,)


# Versions, labels, sources.


def test_spellings_of_one_version_are_no_difference() -> None:
    assert compared({"a": "1.0", "b": "1.0rc1"}, {"a": "1.0.0", "b": "1.0-rc.1"}, {}).factors == ()


def test_a_label_that_the_other_side_leaves_out_is_no_difference_unless_known_to_be() -> None:
    labelled, bare = snapshot("A", {"torch": "2.11.0+cu128"}, cuda="cu128"), snapshot("B", {"torch": "2.11.0"})
    unknown = difference(labelled, bare)
    assert unknown.factors == ()
    assert unknown.notes == ("torch: the CUDA variant is not told in B, so that it is not compared",)
    assert difference(labelled, replace(bare, cuda="cu128")) == Difference(())
    other = only(difference(labelled, replace(bare, cuda="cu130")).factors)
    assert (other.good, other.bad) == ("2.11.0+cu128", "2.11.0 (cu130)")


def test_the_variant_alone_is_a_difference_of_torchs_with_its_libraries() -> None:
    good = snapshot("A", {"torch": "2.11.0", "nvidia-nccl-cu12": "2.27"}, cuda="cu128")
    bad = snapshot("B", {"torch": "2.11.0", "nvidia-nccl-cu13": "2.28"}, cuda="cu130")
    factor = only(difference(good, bad, requiring({"torch 2.11.0": ["nvidia-nccl-cu13==2.28"]}), host=HOST).factors)
    assert (factor.name, factor.good, factor.bad) == ("torch", "2.11.0 (cu128)", "2.11.0 (cu130)")
    assert {member.name for member in factor.members} == {"torch", "nvidia-nccl-cu12", "nvidia-nccl-cu13"}


@pytest.mark.parametrize(
    ("good", "bad", "differ"),
    [
        ("git+https://github.com/o/r@aaaa", "git+https://github.com/o/r.git@bbbb", True),
        ("git+https://github.com/o/r@aaaa", "git+https://github.com/o/r.git@aaaa", False),
        ("file:///a/x-1-py3-none-any.whl#sha256=11", "file:///b/x-1-py3-none-any.whl#sha256=22", True),
        ("file:///a/x-1-py3-none-any.whl#sha256=11", "file:///b/x-1-py3-none-any.whl#sha256=11", False),
        ("file:///a/x-1-py3-none-any.whl", "file:///b/x-1-py3-none-any.whl", False),
    ],
)
def test_sources_of_one_version(good: str, bad: str, differ: bool) -> None:
    ours, theirs = (
        Snapshot(name, "f", (Distribution("x", "1", source),)) for name, source in (("A", good), ("B", bad))
    )
    assert bool(difference(ours, theirs).factors) is differ


def test_git_commits_are_levels_where_no_version_is_told() -> None:
    sources = ("git+https://h/o/r@aaaa", "git+https://h/o/r@bbbb")
    ours, theirs = (
        Snapshot(name, "f", (Distribution("x", None, source),)) for name, source in zip("AB", sources, strict=True)
    )
    factor = only(difference(ours, theirs).factors)
    assert (factor.good, factor.bad) == sources
    assert (factor.members[0].good_source, factor.members[0].bad_source) == sources


# What cannot be compared is a note.


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (Snapshot("B", "torch's collect_env", (), partial=True), "does not list everything"),
        (Snapshot("B", "requirements", (), ranges=("x>=1",)), "only a range"),
        (Snapshot("B", "pip list", (), unread=(Unread(3, "x==?", "no version"),)), "could not be read"),
        (Snapshot("B", "pip freeze", (Distribution("x", None, note="built by conda"),)), "version is not known"),
    ],
)
def test_what_a_side_does_not_cover_is_noted(other: Snapshot, word: str) -> None:
    found = difference(snapshot("A", {"x": "1"}), other)
    assert found.factors == ()
    assert [note for note in found.notes if word in note and "x" in note]


def test_pip_freeze_leaves_out_the_installers() -> None:
    good = snapshot("A", {"pip": "25.0", "setuptools": "80", "x": "1"})
    found = difference(good, replace(snapshot("B", {}), form="pip freeze"))
    assert groups(found) == {"x": ["x"]}
    assert [note for note in found.notes if "pip 25.0, setuptools 80" in note]


def test_where_pip_and_conda_disagree_pips_is_compared_and_both_are_told() -> None:
    both = Snapshot("A", "conda list", (Distribution("numpy", "1.26", manager="conda"), Distribution("numpy", "2.0")))
    found = difference(both, snapshot("B", {"numpy": "2.0"}))
    assert found.factors == ()
    assert "conda has 1.26 and pip has 2.0" in found.notes[0]


def test_what_only_conda_lists_and_its_python_are_no_differences() -> None:
    conda = Snapshot(
        "A",
        "conda list",
        (Distribution("libgcc", "13", manager="conda"), Distribution("python", "3.12", manager="conda")),
    )
    found = difference(conda, snapshot("B", {}))
    assert found.factors == ()
    assert [note for note in found.notes if "what conda installs: libgcc 13" in note]


def test_missing_sentences_ranges_and_unread_lines_are_passed_on() -> None:
    good = snapshot("A", {}, missing=("No GPUs.",), ranges=("x>1",), unread=(Unread(7, "???", "no line of it"),))
    assert difference(good, snapshot("B", {})).notes == (
        "A: No GPUs.",
        "A: x>1 is no exact version; resolve it first",
        "A, line 7: not read: ??? (no line of it)",
    )


# Surroundings.


def test_python_as_far_as_both_tell_it() -> None:
    def found(good: str | None, bad: str | None) -> tuple[Factor, ...]:
        return difference(snapshot("A", {}, python=good), snapshot("B", {}, python=bad)).factors

    assert found("3.12", "3.12.4") == found(None, "3.12.4") == ()
    assert only(found("3.11.9", "3.12.4")).kind is Kind.PYTHON
    assert only(found("3.12.1", "3.12.4")).bad == "3.12.4"


def variables(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items()))


def test_variables_that_are_levels_places_allocations_secrets_and_none_of_ours() -> None:
    good = snapshot(
        "A",
        {},
        variables=variables(
            OMP_NUM_THREADS="8",
            TORCHINDUCTOR_CACHE_DIR="/tmp/a",
            TRITON_LIBCUDA="/usr/lib/x",
            CUDA_VISIBLE_DEVICES="0,1",
            NCCL_API_KEY="hidden",
            LANG="C",
            TORCH_LOGS="+dynamo",
        ),
    )
    bad = snapshot(
        "B",
        {},
        variables=variables(
            TORCHINDUCTOR_CACHE_DIR="/tmp/b",
            TRITON_LIBCUDA="/opt/x",
            CUDA_VISIBLE_DEVICES="2,3",
            LANG="de",
            TORCH_LOGS="+dynamo",
            TORCHDYNAMO_DISABLE="1",
        ),
    )
    found = difference(good, bad)
    assert [(each.name, each.kind, each.good, each.bad) for each in found.factors] == [
        ("OMP_NUM_THREADS", Kind.VARIABLE, "8", None),
        ("TORCHDYNAMO_DISABLE", Kind.VARIABLE, None, "1"),
    ]
    assert [each.name for each in found.held] == ["CUDA_VISIBLE_DEVICES"]
    notes = "\n".join(found.notes)
    assert "TORCHINDUCTOR_CACHE_DIR" in notes and "TRITON_LIBCUDA" in notes and "NCCL_API_KEY" in notes
    assert "hidden" not in notes


def test_variables_that_a_side_does_not_cover_are_no_differences() -> None:
    good = snapshot("A", {}, variables=variables(OMP_NUM_THREADS="8", TORCH_LOGS="x"))
    assert difference(good, snapshot("B", {})).factors == ()
    some = difference(good, snapshot("B", {}, variables=(), covered=("TORCH*",)))
    assert [factor.name for factor in some.factors] == ["TORCH_LOGS"]
    assert some.notes == ("OMP_NUM_THREADS is set in A; whether it is in B is not told",)


def test_a_deleted_compile_cache_is_a_factor_and_another_content_is_held() -> None:
    warm, cold = CompileCache("/a", 285, 353_000_000), CompileCache("/b", 0, 0)
    factor = only(difference(snapshot("A", {}, cache=warm), snapshot("B", {}, cache=cold)).factors)
    assert (factor.kind, factor.good, factor.bad) == (Kind.CACHE, "warm", "cold")
    found = difference(snapshot("A", {}, cache=warm), snapshot("B", {}, cache=CompileCache("/b", 62, 19_000_000)))
    assert found.factors == ()
    assert (found.held[0].good, found.held[0].bad) == ("285 entries, 353 MB", "62 entries, 19 MB")
    assert difference(snapshot("A", {}, cache=warm), snapshot("B", {})) == Difference(())


def test_driver_gpus_and_platform_are_held() -> None:
    good = snapshot("A", {}, driver="570.1", gpus=("H200", "H200"), platform="linux-x86_64")
    bad = snapshot("B", {}, driver="580.2", gpus=("H100",), platform="linux-aarch64")
    assert [(each.name, each.good, each.bad) for each in difference(good, bad).held] == [
        ("GPUs", "2 x H200", "1 x H100"),
        ("driver", "570.1", "580.2"),
        ("platform", "linux-x86_64", "linux-aarch64"),
    ]


def test_platforms_that_two_forms_write_differently() -> None:
    good = snapshot("A", {}, platform="Ubuntu 22.04.4 LTS (x86_64)")
    other = replace(snapshot("B", {}, platform="linux-x86_64"), form="bisect-env snapshot")
    assert difference(good, other).held == ()
    windows = difference(good, replace(other, platform="Microsoft Windows 11 Pro (10.0.26100 64-bit)"))
    assert [(each.good, each.bad) for each in windows.held] == [("Linux", "Windows")]


# What this host cannot have.


def test_a_group_with_something_that_cannot_be_had_is_held_as_a_whole() -> None:
    lines = {"a 1": ["b==1"], "a 2": ["b==2"]}
    found = difference(
        snapshot("A", {"a": "1", "b": "1", "c": "1"}),
        snapshot("B", {"a": "2", "b": "2", "c": "2"}),
        requiring(lines),
        lambda each: "not here" if (each.name, each.version) == ("b", "2") else "",
        HOST,
    )
    assert groups(found) == {"c": ["c"]}
    assert [(each.name, each.why, each.available) for each in found.held] == [
        ("a", "moves together with b, which is held", "good"),
        ("b", "not here", "good"),
    ]


def test_what_is_no_version_cannot_be_asked_of_an_index() -> None:
    found = compared({"x": "1.1+ubuntu0.2"}, {"x": "1.2+ubuntu_0~x"}, {})
    assert found.factors == ()
    assert "no version that an index could be asked for" in found.held[0].why


def test_what_follows_a_held_factor_alone_is_held() -> None:
    lines = {"a 2": ["new"], "b 2": ["new"]}
    found = difference(
        snapshot("A", {"a": "1", "b": "1"}),
        snapshot("B", {"a": "2", "b": "2", "new": "1"}),
        requiring(lines),
        lambda each: "not here" if each.name in ("a", "b") else "",
        HOST,
    )
    assert (found.factors, found.followers) == ((), ())
    assert [each.name for each in found.held] == ["a", "b", "new"]


# Laws.

NAMES = st.sampled_from(["torch", "triton", "nvidia-cublas", "nvidia-cublas-cu12", "a", "b", "c", "d", "e", "f"])
VERSIONS = st.sampled_from(["1", "1.0", "2", "2+cu128", "3.0rc1", "no version", None])
SPECIFIERS = st.sampled_from(["", "==1", "==2", "<2", ">=2", "==1.*", "!=1"])
ENVIRONMENTS = st.dictionaries(NAMES, VERSIONS, max_size=8)
REQUIREMENTS = st.dictionaries(
    st.tuples(NAMES, VERSIONS),
    st.lists(st.builds(lambda name, spec: name + spec, NAMES, SPECIFIERS), max_size=4),
    max_size=12,
)
VARIABLES = st.none() | st.dictionaries(
    st.sampled_from(["OMP_NUM_THREADS", "TORCH_LOGS", "TORCH_HOME", "CUDA_VISIBLE_DEVICES"]),
    st.sampled_from(["1", "/x"]),
).map(lambda values: tuple(sorted(values.items())))
CACHES = st.none() | st.builds(CompileCache, st.just("/c"), st.sampled_from([0, 3]), st.sampled_from([0, 9]))


@st.composite
def snapshots(draw: st.DrawFn, name: str) -> Snapshot:
    return snapshot(
        name,
        draw(ENVIRONMENTS),
        python=draw(st.sampled_from([None, "3.11", "3.12.1", "3.12.4"])),
        cuda=draw(st.sampled_from([None, "cu128", "cu130"])),
        driver=draw(st.sampled_from([None, "570", "580"])),
        variables=draw(VARIABLES),
        cache=draw(CACHES),
        partial=draw(st.booleans()),
    )


@given(snapshots("A"), REQUIREMENTS)
def test_nothing_differs_from_itself(one: Snapshot, lines: Mapping[tuple[str, str | None], Sequence[str]]) -> None:
    found = difference(one, one, lambda each: lines.get((each.name, each.version)), host=HOST)
    assert (found.factors, found.held, found.followers) == ((), (), ())


@given(snapshots("A"), snapshots("B"), REQUIREMENTS)
def test_exchanging_the_sides_exchanges_the_levels(
    good: Snapshot, bad: Snapshot, lines: Mapping[tuple[str, str | None], Sequence[str]]
) -> None:
    def pins(each: Distribution) -> Sequence[str] | None:
        return lines.get((each.name, each.version))

    there, back = difference(good, bad, pins, host=HOST), difference(bad, good, pins, host=HOST)
    assert [(f.name, f.kind, f.good, f.bad) for f in there.factors] == [
        (f.name, f.kind, f.bad, f.good) for f in back.factors
    ]
    for one, other in zip(there.factors, back.factors, strict=True):
        assert [(m.name, m.good, m.bad) for m in one.members] == [(m.name, m.bad, m.good) for m in other.members]
    assert [(h.name, h.good, h.bad) for h in there.held] == [(h.name, h.bad, h.good) for h in back.held]
    assert [(f.change.name, f.factors) for f in there.followers] == [(f.change.name, f.factors) for f in back.followers]


def noted(name: str, notes: Sequence[str]) -> bool:
    """Whether a note says that this one was not compared."""
    listed = re.compile(rf"not compared, since .*[:,] {name} ")
    return any(note.startswith(f"{name}: not compared") or listed.search(note) for note in notes)


@given(snapshots("A"), snapshots("B"), REQUIREMENTS, st.sets(NAMES))
def test_every_changed_distribution_is_in_one_place(
    good: Snapshot,
    bad: Snapshot,
    lines: Mapping[tuple[str, str | None], Sequence[str]],
    private: set[str],
) -> None:
    found = difference(
        good,
        bad,
        lambda each: lines.get((each.name, each.version)),
        lambda each: "private" if each.name in private else "",
        HOST,
    )
    places = [member.name for f in found.factors if f.kind is Kind.DISTRIBUTION for member in f.members]
    places += [each.name for each in found.held] + [each.change.name for each in found.followers]
    assert len(places) == len(set(places))
    assert len({factor.name for factor in found.factors}) == len(found.factors)
    ours, theirs = ({each.name: each.version for each in side.distributions} for side in (good, bad))
    for name in ours.keys() | theirs.keys():
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None:
            assert (name in places) != noted(name, found.notes), name
        elif name != "torch":  # Whose label may be left out.
            assert (name in places) != same_version(one, other), name
    known = {factor.name for factor in found.factors}
    assert all(set(each.factors) <= known for each in found.followers)


@given(snapshots("A"), snapshots("B"), REQUIREMENTS)
def test_a_split_keeps_every_member_once(
    good: Snapshot, bad: Snapshot, lines: Mapping[tuple[str, str | None], Sequence[str]]
) -> None:
    for factor in difference(good, bad, lambda each: lines.get((each.name, each.version)), host=HOST).factors:
        parts = split(factor)
        assert sorted(m.name for part in parts for m in part.members) == sorted(m.name for m in factor.members)
        assert len({part.name for part in parts}) == len(parts)
        assert parts[0].name == factor.name
