"""The document of a capture, read back: whole, or refused with the place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots import capture
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import CompileCache, Library, Seen, Unread

DOCUMENT: dict[str, Any] = {
    capture.KEY: capture.FORMAT,
    "python": "3.11.8",
    "implementation": "cpython",
    "executable": "/srv/venv/bin/python",
    "platform": "linux-x86_64",
    "system": "Linux-6.8",
    "distributions": [
        {"name": "torch", "version": "2.11.0", "source": "", "editable": False, "manager": "pip"},
        {"name": "mine", "version": "0.1", "source": "file:///srv/mine", "editable": True, "manager": "pip"},
        {"name": "numpy", "version": "2.0", "source": "", "editable": False, "manager": "conda", "build": "py_0"},
        {"name": "numpy", "version": "2.1", "source": "", "editable": False, "manager": "pip"},
    ],
    "unread": [{"path": "/srv/venv/x.dist-info", "why": "ValueError: no name"}],
    "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "hip": None},
    "driver": "580.1",
    "gpus": ["NVIDIA H200", "NVIDIA H200"],
    "variables": [["OMP_NUM_THREADS", "4"], ["HF_TOKEN", "geheim"]],
    "cache": {"path": "/tmp/torchinductor_me", "entries": 285, "bytes": 353_000_000, "complete": True},
}


def printed(document: object) -> str:
    return f"Welcome\n{capture.begin()}\n{json.dumps(document, indent=1)}\n{capture.end()}\nConnection closed.\n"


@pytest.mark.parametrize(
    "text",
    [
        printed(DOCUMENT),
        printed(DOCUMENT).replace("\n", "\r\n"),
        "\n".join(f"> {line}" for line in printed(DOCUMENT).split("\n")),
        json.dumps(DOCUMENT),
        json.dumps(DOCUMENT, indent=4),
    ],
    ids=["printed", "through a terminal", "quoted", "bare", "indented"],
)
def test_all_of_it(text: str) -> None:
    found = read_text(text, "x")
    assert found.form == "bisect-env snapshot"
    assert [(each.name, each.version, each.manager) for each in found.distributions] == [
        ("mine", "0.1", "pip"),
        ("numpy", "2.0", "conda"),
        ("numpy", "2.1", "pip"),
        ("torch", "2.11.0", "pip"),
    ]
    assert "editable" in found.of("mine")[0].note and found.of("mine")[0].source == "file:///srv/mine"
    assert found.of("numpy")[0].note == "conda build py_0"
    assert (found.python, found.platform, found.cuda) == ("3.11.8", "linux-x86_64", "cu130")
    assert (found.driver, found.gpus) == ("580.1", ("NVIDIA H200",) * 2)
    assert found.variables == (("HF_TOKEN", "***"), ("OMP_NUM_THREADS", "4")) and "TRITON*" in found.covered
    assert found.cache == CompileCache("/tmp/torchinductor_me", 285, 353_000_000)
    assert found.unread == (Unread(0, "/srv/venv/x.dist-info", "ValueError: no name"),) and not found.partial


def test_an_older_document_does_not_say_where() -> None:
    found = read_text(printed(DOCUMENT), "x")
    assert found.seen == () and found.where("variables") is Seen.UNKNOWN
    assert found.venv is None and found.libraries is None
    assert any("a job's own script may set others" in each for each in found.missing)


def test_a_process() -> None:
    told = {
        "venv": "/srv/venv",
        "variables": None,
        "cache": None,
        "libraries": [["libnccl.so.2", "/usr/lib/libnccl.so.2"]],
        "seen": {"python": "process", "variables": "unknown", "libraries": "process", "driver": "another word"},
        "remarks": ["The variables are not known: https://me:geheim@x/."],
    }
    found = read_text(printed(DOCUMENT | told), "x")
    assert found.variables is None and found.cache is None and found.venv == "/srv/venv"
    assert found.libraries == (Library("libnccl.so.2", "/usr/lib/libnccl.so.2"),)
    assert found.seen == (("python", Seen.PROCESS), ("variables", Seen.UNKNOWN), ("libraries", Seen.PROCESS))
    assert "geheim" not in repr(found) and found.missing[0].startswith("The variables are not known")
    assert not any("a job's own script may set others" in each for each in found.missing)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"found": "there is none", "wanted": "another"}, "x: there is none\n  wanted: another"),
        ({"found": "it hides", "wanted": ""}, "x: it hides\n  wanted: --python or --activate"),
        ({}, r"problem\.wanted: nothing"),
    ],
)
def test_nothing_to_capture(problem: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_text(printed({capture.KEY: capture.FORMAT, "problem": problem}), "x")


@pytest.mark.parametrize(
    ("torch", "variant"),
    [
        ({"version": "2.11.0+cpu", "cuda": None, "hip": None}, "cpu"),
        ({"version": "2.9.0", "cuda": None, "hip": "6.4.43482"}, "rocm6.4"),
        (None, None),
    ],
)
def test_variants(torch: object, variant: str | None) -> None:
    assert read_text(json.dumps(DOCUMENT | {"torch": torch}), "x").cuda == variant


def test_a_cache_that_was_not_counted_to_its_end() -> None:
    cache = DOCUMENT["cache"] | {"complete": False}
    found = read_text(json.dumps(DOCUMENT | {"cache": cache}), "x")
    assert any("at least 285" in sentence for sentence in found.missing)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({capture.KEY: 99}, "version 99"),
        ({"python": 3.11}, "python"),
        ({"distributions": {}}, "distributions"),
        ({"distributions": [7]}, r"distributions\[0\]"),
        ({"distributions": [{"name": "a"}]}, r"distributions\[0\]\.manager"),
        ({"gpus": [1]}, "gpus"),
        ({"variables": [["A"]]}, "variables"),
        ({"cache": {"path": "/", "entries": -1, "bytes": 0, "complete": True}}, r"cache\.entries"),
        ({"cache": {"path": "/", "entries": True, "bytes": 0, "complete": True}}, r"cache\.entries"),
        ({"unread": [{"path": "x"}]}, r"unread\[0\]\.why"),
    ],
    ids=str,
)
def test_damaged(change: dict[str, object], place: str) -> None:
    with pytest.raises(BadInput, match=place):
        read_text(json.dumps(DOCUMENT | change), "x")


def test_cut_off_anywhere() -> None:
    text = printed(DOCUMENT)
    for end in range(text.index(capture.begin()) + len(capture.begin()), text.index(capture.end()), 37):
        with pytest.raises(BadInput, match="cut off"):
            read_text(text[:end], "x")


def test_two_hosts_in_one_file() -> None:
    with pytest.raises(BadInput, match=r"line \d+: a second capture"):
        read_text(printed(DOCUMENT) * 2, "x")
