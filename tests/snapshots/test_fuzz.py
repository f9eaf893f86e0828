"""Whatever is handed over: a snapshot or BadInput, never a crash; what is read stands in the text."""

from __future__ import annotations

import contextlib
import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.errors import BadInput
from bisect_env.snapshots.forms import FORMS
from bisect_env.snapshots.reading import read_bytes, read_text
from bisect_env.snapshots.records import Snapshot
from tests.snapshots import posted
from tests.snapshots.reads import LINUX, pins, read
from tests.snapshots.test_reading import SAMPLES

TEXTS = [text for text, _ in SAMPLES.values()]
TEXTS += [text for name, text in vars(posted).items() if name.isupper() and isinstance(text, str)]
LINES = sorted({line for text in TEXTS for line in text.splitlines()})
BITS = [
    "==", "===", " @ ", "git+https://u:p@h/x@", "-e ", "-r ", "; ", "'", '"', "[", "]", "{", "}", "\\\n", "#egg=", "#",
    "[[package]]\n", "[[packages]]\n", "source = {", "marker = \"", "extra == '", "version = 1\n", "\x1b[31m", "\u00a0",
    "(" * 300, "9" * 5000, "\r", "\t", "Package Version\n------- -------\n", '[{"name": "', "lock-version = \"1.0\"\n",
]  # fmt: skip


def reads(text: str) -> Snapshot | None:
    """The snapshot, or None when the text is refused; any other exception is a defect."""
    with contextlib.suppress(BadInput):
        return read(text)
    return None


def check(text: str, snapshot: Snapshot | None) -> None:
    if snapshot is None:
        return
    assert snapshot.distributions or snapshot.ranges
    names = [(each.name, each.manager) for each in snapshot.distributions]
    assert names == sorted(set(names)), "sorted, and no distribution twice under one manager"
    # What a terminal shows of it: a colour in the middle of a version is no part of it.
    seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    for each in snapshot.distributions:
        assert each.version is None or each.version in seen or each.version in seen.replace("%2B", "+")
        assert each.version is not None or each.note
    for left in snapshot.unread:
        assert left.why
        assert 0 <= left.line <= text.count("\n") + text.count("\r") + 1


@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    check(text, reads(text))


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(BadInput):
        read_bytes(data, "given.txt")


@settings(max_examples=300)
@given(
    st.lists(
        st.one_of(st.sampled_from(LINES), st.sampled_from(BITS), st.text(string.printable, max_size=20)), max_size=30
    )
)
def test_lines_of_all_forms_mixed(parts: list[str]) -> None:
    text = "\n".join(parts)
    snapshot = reads(text)
    check(text, snapshot)
    assert "s3cr3t" not in repr(snapshot)


@settings(max_examples=400)
@given(st.sampled_from(TEXTS), st.data())
def test_samples_cut_off_and_damaged(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 40)))
        text = (
            text[:start] + data.draw(st.one_of(st.sampled_from(BITS), st.just(""), st.text(max_size=8))) + text[stop:]
        )
    text = text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text
    check(text, reads(text))


@given(st.sampled_from(TEXTS), st.data())
def test_every_form_refuses_the_others_texts_without_a_crash(text: str, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(FORMS))
    text = text[data.draw(st.integers(0, len(text))) :]
    assert 0 <= form.recognise(text) <= 1
    with contextlib.suppress(BadInput):
        form.read(text, "given.txt", LINUX)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,10}[A-Za-z0-9]", fullmatch=True)
VERSIONS = st.from_regex(
    r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc)[0-9])?(\.post[0-9])?(\+[a-z0-9]{1,6})?", fullmatch=True
)


@given(st.dictionaries(NAMES, VERSIONS, min_size=1, max_size=20))
def test_what_is_written_as_a_freeze_is_read_as_it_was(wanted: dict[str, str]) -> None:
    normal = {name.lower().replace("_", "-").replace(".", "-"): version for name, version in wanted.items()}
    unambiguous = {name: version for name, version in normal.items() if "--" not in name}
    text = "".join(f"{name}=={version}\n" for name, version in unambiguous.items())
    if text:
        assert pins(read_text(text, "-")) == unambiguous
        table = "Package Version\n------- -------\n" + text.replace("==", " ")
        assert pins(read_text(table, "-")) == unambiguous
