"""Every way to get a matrix file wrong: the message says where, what was found, and what would be right."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.errors import BadInput
from bisect_env.matrix.loading import load
from tests.matrix.conftest import Loader, Releases

Refused = Callable[..., BadInput]

CASES = [
    # text, place, part of found, part of wanted
    ("axis: {torch: [1]}", "line 1, column 1 (axis)", "unknown key 'axis'", "axes (the nearest known one)"),
    ("trails: 3", "line 1, column 1 (trails)", "unknown key 'trails'", "trials (the nearest known one)"),
    ("index: {torch_backnd: cpu}", "line 1, column 9 (index.torch_backnd)", "unknown key", "torch-backend (the"),
    ("limits: {cell: 3}", "line 1, column 10 (limits.cell)", "under limits", "cells (the nearest"),
    ("reproducer: {nam: racer}", "line 1, column 14 (reproducer.nam)", "under reproducer", "name (the nearest"),
    ("axes: {}\ntrials: many", "line 2, column 1 (trials)", "'many'", "a whole number"),
    ("axes: {}\ntrials: 1.5", "line 2, column 1 (trials)", "'1.5'", "a whole number"),
    ("trials: 0", "line 1, column 1 (trials)", "'0'", "at least 1"),
    ("trials:", "line 1, column 1 (trials)", "nothing", "a whole number"),
    ("at_onec: 3", "line 1, column 1 (at_onec)", "unknown key 'at_onec'", "at_once (the nearest known one)"),
    ("at_once: 0", "line 1, column 1 (at_once)", "'0'", "at least 1"),
    ("sollo: 0", "line 1, column 1 (sollo)", "unknown key 'sollo'", "solo (the nearest known one)"),
    ("solo: -1", "line 1, column 1 (solo)", "'-1'", "at least 0"),
    ("stop-erly: no", "line 1, column 1 (stop-erly)", "unknown key", "stop_early (the nearest known one)"),
    ("stop_early: perhaps", "line 1, column 1 (stop_early)", "'perhaps'", "true or false"),
    ("conditions: {cache: stail}", "line 1, column 14 (conditions.cache)", "'stail'", "stale (the nearest known one)"),
    (
        "axes: {torch: [2.11.0], numpy: [1.0, 2.0]}\nconditions: {cache: stale}",
        "line 2, column 14 (conditions.cache)",
        "cache: stale for torch-2.11.0_numpy-1.0, and no cell with another torch",
        "a cell with another torch",
    ),
    ("slow_below: 95", "line 1, column 1 (slow_below)", "'95'", "at most 1"),
    ("limits: {trial: -1}", "line 1, column 10 (limits.trial)", "'-1'", "more than 0"),
    ("limits: {trial: inf}", "line 1, column 10 (limits.trial)", "'inf'", "a number"),
    ("index: {offline: maybe}", "line 1, column 9 (index.offline)", "'maybe'", "true or false"),
    ("axes: [torch]", "line 1, column 1 (axes)", "a list with 1 entry", "a mapping"),
    ("axes: {torch: {a: b}}", "line 1, column 8 (axes.torch)", "a mapping with 1 key", "a list"),
    ("axes: {torch: [[2.11.0]]}", "line 1, column 16 (axes.torch[0])", "a list with 1 entry", "a single value"),
    ("include: {torch: 2}", "line 1, column 1 (include)", "a mapping", "a list"),
    ("exclude: [torch]", "line 1, column 11 (exclude[0])", "'torch'", "a mapping"),
    ("requirements: {a: b}", "line 1, column 1 (requirements)", "a mapping", "a list"),
    ("axes: {torch: []}", "line 1, column 8 (axes.torch)", "an empty axis", "at least one level"),
    ("axes:\n  torch:", "line 2, column 3 (axes.torch)", "nothing", "a list"),
    ("conditions: {pattern: []}", "line 1, column 14 (conditions.pattern)", "an empty axis", "at least one level"),
    ("axes:\n  torch: [2.10.0, 2.1l.0]", "line 2, column 19 (axes.torch[1])", "'2.1l.0' is no version", "2.11.0, if"),
    ("axes: {torch: [2..11]}", "line 1, column 16 (axes.torch[0])", "'2..11' is no version", "2.11, if"),
    ("axes: {torch: [newest]}", "line 1, column 16 (axes.torch[0])", "'newest' is no version", "a range in quotes"),
    ('axes: {torch: ">=2.x"}', "line 1, column 8 (axes.torch)", "'>=2.x' is no clause", ">=2.11,<2.15"),
    ('axes: {torch: ">=2.11"}', "line 1, column 8 (axes.torch)", "no index to look releases up", "a list of versions"),
    ("axes: {torch: [2.11.0, 2.11]}", "line 1, column 24 (axes.torch[1])", "'2.11' a second time", "each level"),
    ("axes: {torch: [2], Torch: [3]}", "line 1, column 20 (axes.Torch)", "axis torch a second time", "one list"),
    ("axes: {torch: ['']}", "line 1, column 16 (axes.torch[0])", "an empty level", "null for none"),
    (f"axes: {{torch: ['{'9' * 5000}']}}", "line 1, column 16 (axes.torch[0])", "is no version", "a range in quotes"),
    (f"axes: {{torch: '>={'9' * 5000}'}}", "line 1, column 8 (axes.torch)", "is no clause", ">=2.11,<2.15"),
    (f"reproducer: {'r' * 5000}", "line 1, column 1 (reproducer)", "no reproducer 'rrr", "racer"),
    (f"base: ./{'b' * 5000}", "line 1, column 1 (base)", "File name too long", "an interpreter"),
    ("requirements: ['x @ https://[']", "line 1, column 16 (requirements[0])", "is no URL", "https://HOST"),
    ("index: {urls: ['https://[/simple']}", "line 1, column 16 (index.urls[0])", "is no URL", "https://HOST"),
    ("index: {urls: ['https://h:99999999']}", "line 1, column 16 (index.urls[0])", "is no URL", "https://HOST"),
    ("index: {find-links: ['https://[']}", "line 1, column 22 (index.find-links[0])", "is no URL", "https://HOST"),
    ("requirements: ['x @ git+file:///no/where']", "line 1, column 16 (requirements[0])", "no such", "git repository"),
    ("reproducer: {command: [cat, x], files: [/dev/zero]}", "line 1, column 41 (reproducer.files[0])", "a device", "a"),
    ("axes: {cuda: [rocm6.2]}", "line 1, column 15 (axes.cuda[0])", "'rocm6.2'", "cu128"),
    ("axes: {cuda: ['12.8']}", "line 1, column 15 (axes.cuda[0])", "'12.8' is no CUDA variant", "cu128"),
    ("axes: {cuda: [cuda-13.0.1]}", "line 1, column 15 (axes.cuda[0])", "no CUDA variant", "cu130"),
    ("axes: {cuda: [gpu]}", "line 1, column 15 (axes.cuda[0])", "'gpu' is no CUDA variant", "cu130"),
    ("axes: {python: [2.7]}", "line 1, column 17 (axes.python[0])", "'2.7' is no Python", "3.12"),
    ("axes: {transfomers: [5]}", "line 1, column 8 (axes.transfomers)", "unknown name 'transfomers'", "transformers"),
    ("axes: {'a b': [5]}", "line 1, column 8 (axes.a b)", "'a b' is no name", "a distribution"),
    ("axes: {threads: [2, 3]}", "line 1, column 8 (axes.threads)", "is a condition", "conditions: {threads"),
    ("axes: {env: [A]}", "line 1, column 8 (axes.env)", "env is a list", "a mapping"),
    ("axes: {env: {path: [1]}}", "line 1, column 14 (axes.env.path)", "'path' as a variable", "in capitals"),
    ("axes: {A_B: [1], env: {A_B: [2]}}", "line 1, column 24 (axes.env.A_B)", "and one level up", "once"),
    ("axes: {A_B: [1]}\nenv: {A_B: 2}", "line 1, column 8 (axes.A_B)", "fixed under env too (line 2", "one of the two"),
    ("axes: {A_B: [1]}\npass-env: A_B", "line 2, column 1 (pass-env)", "set by this file too (line 1", "one of the"),
    ("env: {BISECT_ENV_EVENTS: x}", "line 1, column 7 (env.BISECT_ENV_EVENTS)", "BISECT_ENV_EVENTS", "another name"),
    ("env: {A-B: x}", "line 1, column 7 (env.A-B)", "'A-B' as a variable", "letters"),
    ("env: {A: [1, 2]}", "line 1, column 7 (env.A)", "a list", "a single value"),
    (
        "conditions: {patern: hot}",
        "line 1, column 14 (conditions.patern)",
        "unknown key 'patern' for racer",
        "pattern (",
    ),
    ("conditions: {pattern: [hot, hott]}", "line 1, column 29 (conditions.pattern[1])", "'hott'", "hot (the nearest"),
    ("conditions: {threads: 9}", "line 1, column 14 (conditions.threads)", "'9'", "at least 1 and at most 8"),
    ("conditions: {rate: nan}", "line 1, column 14 (conditions.rate)", "'nan'", "a number"),
    ("conditions: {warm-steps: 1.5}", "line 1, column 14 (conditions.warm-steps)", "'1.5'", "a whole number"),
    ("conditions: {fused: perhaps}", "line 1, column 14 (conditions.fused)", "'perhaps'", "true or false"),
    ("conditions: {threads:}", "line 1, column 14 (conditions.threads)", "nothing", "a list"),
    ("conditions: {seed: 1}", "line 1, column 14 (conditions.seed)", "set by the runner", "left out"),
    ("conditions: {cache: wram}", "line 1, column 14 (conditions.cache)", "'wram'", "warm (the nearest known one)"),
    ("conditions: {cache: ./none}", "line 1, column 14 (conditions.cache)", "no such file or folder", "compile cache"),
    ("exclude: [{torch: 1}]", "line 1, column 12 (exclude[0].torch)", "'torch' is no axis", "no key at all"),
    ("axes: {torch: 2}\nexclude: [{}]", "line 2, column 11 (exclude[0])", "an empty entry", "{axis: level"),
    ("axes: {torch: 2}\nexclude: [{torch: 2}]", "line 2, column 1 (exclude)", "no cell left", "leaves some"),
    (
        "axes: {torch: 2}\ninclude: [{torch: '>=3'}]",
        "line 2, column 12 (include[0].torch)",
        "'>=3'",
        "one version here",
    ),
    ("axes: {torch: 2}\ninclude: [{treads: 3}]", "line 2, column 12 (include[0].treads)", "'treads'", "threads (the"),
    ("axes: {torch: 2}\nreference: {torch: 3}", "line 2, column 1 (reference)", "marks no cell", "one cell under"),
    ("reproducer: rcer", "line 1, column 1 (reproducer)", "no reproducer 'rcer'", "racer (the nearest known one)"),
    ("reproducer: ../racer", "line 1, column 1 (reproducer)", "no reproducer", "racer"),
    ("reproducer: {}", "line 1, column 1 (reproducer)", "neither a name nor a command", "command"),
    ("reproducer: {command: []}", "line 1, column 1 (reproducer)", "neither a name nor", "command"),
    (
        "reproducer: {command: 'a \"b'}",
        "line 1, column 14 (reproducer.command)",
        "No closing quotation",
        "a list of words",
    ),
    (
        "reproducer: {command: [x], files: [no.py]}",
        "line 1, column 36 (reproducer.files[0])",
        "no such",
        "relative paths",
    ),
    (
        "reproducer: {command: [python, t.py]}",
        "line 1, column 32 (reproducer.command[1])",
        "not among",
        "files: [t.py]",
    ),
    ("reproducer: {name: racer, files: [.]}", "line 1, column 27 (reproducer.files)", "for the shipped", "a command"),
    ("reproducer: {command: x, fail-pattern: '('}", "line 1, column 26 (reproducer.fail-pattern)", "'('", "regular"),
    ("index: {torch-backend: rocm}", "line 1, column 9 (index.torch-backend)", "'rocm'", "auto (the variant"),
    ("index: {torch-fallback: true}", "line 1, column 9 (index.torch-fallback)", "without torch-backend", "cpu"),
    ("axes: {cuda: [cu128]}\nindex: {torch-backend: cpu}", "line 2, column 9 (index.torch-backend)", "cpu for", "auto"),
    ("axes: {torch: 2+cu128, cuda: cu130}", "line 1, column 1 (axes)", "torch==2+cu128 and cuda cu130", "no cuda"),
    ("index: {find-links: [./none]}", "line 1, column 22 (index.find-links[0])", "no such file", "wheels"),
    ("as_of: 2026-13-01", "line 1, column 1 (as_of)", "'2026-13-01' is no date", "the word release"),
    ("as_of: yesterday", "line 1, column 1 (as_of)", "'yesterday'", "2026-05-01"),
    ("base: ./none", "line 1, column 1 (base)", "no such file", "an interpreter"),
    ("base: .", "line 1, column 1 (base)", "'bin/python'", "an interpreter"),
    ("requirements: [numpy >> 2]", "line 1, column 16 (requirements[0])", "'numpy >> 2'", "numpy>=2"),
    ("requirements: [./tree]", "line 1, column 16 (requirements[0])", "has no name", "NAME @ ./tree"),
    ("requirements: [a @ ./tree]", "line 1, column 16 (requirements[0])", "no such file", "relative paths"),
    ("name: x\nname: y", "line 2, column 1", "the key 'name' a second time", "once"),
    ("name: ''", "line 1, column 1 (name)", "''", "some text"),
    ("axes: {torch: git+https:x}", "line 1, column 8 (axes.torch)", "is no URL", "git+https://HOST"),
    ("requirements: [a @ ~nobody-here/x]", "line 1, column 16 (requirements[0])", "no such user", "~/"),
]


@pytest.mark.parametrize(("text", "place", "found", "wanted"), CASES, ids=[case[0][:60] for case in CASES])
def test_bad_input(refused: Refused, text: str, place: str, found: str, wanted: str) -> None:
    error = refused(text)
    assert error.place == place
    assert found in error.found
    assert wanted in error.wanted
    assert str(error).startswith(f"{error.source}: {place}: ")


def test_a_helper_module_is_no_reproducer(loaded: Loader, reproducers: Path) -> None:
    with pytest.raises(BadInput, match="no OPTIONS") as caught:
        loaded("reproducer: protocol\n")
    assert caught.value.source == str(reproducers / "protocol.py")


def test_the_reproducer_is_missing(matrix_file: Path) -> None:
    matrix_file.write_text("axes: {torch: [2.11.0]}\n")
    with pytest.raises(BadInput) as caught:
        load(matrix_file)
    assert caught.value.found == "no key 'reproducer'"
    assert "reproducer: ..." in caught.value.wanted


def test_a_range_without_a_release(refused: Refused) -> None:
    error = refused('axes:\n  torch:\n  - ">=3,<4"\n', Releases("2.14.1", "2.15.0", "3.0.0rc1"))
    assert error.place == "line 3, column 5 (axes.torch[0])"
    assert error.found == "no released version of torch in '>=3,<4'"
    assert error.wanted == "a range that holds a release; the newest is 2.15.0"


@pytest.mark.parametrize(
    ("day", "wanted"),
    [("2025-06-01", "the newest as of 2025-06-01 is 2.11.0"), ("2001-01-01", "a later as_of: every release of torch")],
)
def test_a_range_without_a_release_on_that_day(refused: Refused, day: str, wanted: str) -> None:
    releases = Releases("2.11.0", "2.12.0", dates={"2.11.0": "2025-01-01", "2.12.0": "2026-01-01"})
    error = refused(f"axes: {{torch: '>=2.12'}}\nas_of: {day}", releases)
    assert error.found == f"no released version of torch in '>=2.12' as of {day}"
    assert wanted in error.wanted


def test_a_range_of_a_distribution_that_no_index_has(refused: Refused) -> None:
    error = refused('axes: {trch: ">=3"}\n', Releases())
    assert error.found == "no released version of trch in '>=3'"
    assert "trch" in error.wanted


def test_a_range_cut_in_two_by_missing_quotes(refused: Refused) -> None:
    error = refused("axes:\n  torch: ['>=2.11', <2.15]\n", Releases("2.11.0"))
    assert error.place == "line 2, column 21 (axes.torch[1])"
    assert error.wanted == 'the two as one level in quotes: ">=2.11,<2.15"'


def test_ten_thousand_cells(refused: Refused) -> None:
    levels = list(range(10))
    started = time.perf_counter()
    error = refused(f"name: x\naxes:\n  a: {levels}\n  b: {levels}\n  c: {levels}\n  d: {levels}\n")
    assert time.perf_counter() - started < 1
    assert error.place == "line 2, column 1 (axes)"
    assert error.found == "10000 cells (10 a x 10 b x 10 c x 10 d)"
    assert "limits: {cells: 10000}" in error.wanted


def test_duplicate_cells_are_named(refused: Refused) -> None:
    error = refused("axes: {torch: [2.11.0, 2.12.0]}\ninclude:\n  - {torch: 2.13.0}\n  - {torch: 2.13}\n")
    assert error.place == "line 4, column 5 (include[1])"
    assert error.found == "two cells are the same: torch 2.13.0 (include[0]) and torch 2.13.0 (include[1])"
    error = refused("axes: {torch: [2.11.0+cu130, 2.11.0], cuda: [null, cu130]}\n")
    assert error.place == "line 1, column 1 (axes)"
    assert "torch 2.11.0+cu130, cuda none (of the axes)" in error.found


def test_the_reference_must_mark_one_cell_a_condition(refused: Refused) -> None:
    axes = "axes: {torch: [2.11.0, 2.12.0], transformers: [5.6.0, 5.8.1]}\nconditions: {pattern: [hot, barrier]}\n"
    error = refused(axes + "reference: {torch: 2.11.0}\n")
    assert error.place == "line 3, column 1 (reference)"
    assert error.found == (
        "the reference marks 2 cells (torch-2.11.0_transformers-5.6.0_hot, torch-2.11.0_transformers-5.8.1_hot) "
        "under pattern=hot"
    )
    error = refused(axes + "reference: {torch: 2.11.0, transformers: 5.6.0, pattern: hot}\n")
    assert error.found == "the reference marks no cell under pattern=barrier"


SECRETS = [
    "index: {urls: ['ftp://me:hunter2@mirror.example/simple']}",
    "index: {urls: 'https://me:hunter2@mirror.example', urls2: 'https://me:hunter2@mirror.example'}",
    "index: {urls: {'https://me:hunter2@mirror.example': x}}",
    "index: {offline: 'https://me:hunter2@mirror.example'}",
    "index: {find-links: ['ftp://me:hunter2@mirror.example']}",
    "requirements: ['git+https://me:hunter2@mirror.example/x']",
    "requirements: ['a @ git+https://hunter2@mirror.example/x']",
    "requirements: ['a @ https://mirror.example/x?token=hunter2']",
    "requirements: ['a >> https://me:hunter2@mirror.example']",
    "axes: {a: 'git+https://me:hunter2@mirror.example/x@main'}",
    "'https://me:hunter2@mirror.example': 1",
]


@pytest.mark.parametrize("text", SECRETS)
def test_no_message_holds_a_credential(refused: Refused, text: str) -> None:
    error = refused(text)
    assert "hunter2" not in str(error)
