"""Whatever happens to a report on its way, nothing is made up: a version that is told stands in the text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from bisect_env.errors import BadInput
from bisect_env.snapshots.forms import FORMS
from bisect_env.snapshots.reading import read_bytes, read_text
from bisect_env.snapshots.records import Snapshot
from tests.snapshots.posted import (
    COLLECT_ENV,
    CONDA,
    LIGHTNING,
    OLD_COLLECT_ENV,
    OLD_LIGHTNING,
    OLD_VLLM,
    TRANSFORMERS,
    VLLM,
)
from tests.snapshots.test_captured import DOCUMENT, printed
from tests.snapshots.test_conda import EXPORTED

SAMPLES = [
    *(COLLECT_ENV, CONDA, LIGHTNING, OLD_COLLECT_ENV, OLD_LIGHTNING, OLD_VLLM, TRANSFORMERS, VLLM, EXPORTED),
    *(printed(DOCUMENT), json.dumps(DOCUMENT)),
]
GARBAGE = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30) | st.sampled_from(
    [
        "\n",
        ":",
        "=",
        "==",
        "  - ",
        "* CUDA:\n",
        "[pip3] ",
        "[conda] ",
        "> ",
        "{",
        '"',
        "dependencies:\n",
        "1.0",
        "#",
        "@",
    ]
)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 200)))
        kind = draw(st.sampled_from(["cut", "drop", "insert", "repeat", "join"]))
        if kind == "cut":
            text = text[:begin]
        elif kind == "drop":
            text = text[:begin] + text[end:]
        elif kind == "insert":
            text = text[:begin] + draw(GARBAGE) + text[begin:]
        elif kind == "repeat":
            text = text[:end] + text[begin:]
        else:
            text = text[:begin] + draw(st.sampled_from(SAMPLES))[begin:]
    return text


def check(found: Snapshot, text: str) -> None:
    names = canonicalize_name(text)
    for each in found.distributions:
        assert each.version is None or each.version in text
        assert canonicalize_name(each.name) in names or (each.name == "torch" and "pytorch" in text.lower())
    lines = text.count("\n") + 1
    assert all(0 <= each.line <= lines and each.why for each in found.unread)


@given(mangled())
def test_mangled(text: str) -> None:
    try:
        found = read_text(text, "x")
    except BadInput:
        return
    check(found, text)


@given(st.binary(max_size=300), st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_bytes_in_between(data: bytes, sample: str, place: int) -> None:
    text = sample.encode()
    mixed = text[:place] + data + text[place:]
    try:
        read_bytes(mixed, "x")
    except BadInput:
        return


@given(st.text(max_size=200) | mangled())
def test_recognition_answers_for_any_text(text: str) -> None:
    for form in FORMS:
        assert 0.0 <= form.recognise(text) <= 1.0


def test_every_sample_is_recognised_as_one_form_only() -> None:
    for sample in SAMPLES:
        assert sum(form.recognise(sample) >= 0.95 for form in FORMS) <= 2
        assert "geheim" not in repr(read_text(sample, "x"))
