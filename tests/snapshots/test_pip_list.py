from __future__ import annotations

import json

import pytest

from tests.snapshots.reads import only, pins, read, refusal

TWO = """\
Package            Version
------------------ -------------
flash_attn         2.8.0.post2
torch              2.11.0+cu128
triton-windows     3.6.0.post25
zmq-unknown        0+unknown
"""

THREE = """\
(venv) PS C:\\Users\\me> pip list
Package      Version       Editable project location
------------ ------------- --------------------------------
kernels      0.0.1         C:\\Users\\me me\\src\\kernels
recipes      1.0.dev0      /home/me/recipes
torch        2.11.0+cu128
WARNING: Ignoring invalid distribution -orch (c:\\users\\me\\lib)
"""

VERBOSE = """\
Package    Version  Editable project location Location                            Installer
---------- -------- ------------------------- ----------------------------------- ---------
kernels    0.0.1    /home/me/kernels          /opt/conda/lib/python3.11/site      pip
numpy      1.26.4                             /opt/conda/lib/python3.11/site      conda
torch      2.11.0                             /opt/conda/lib/python3.11/site      pip
"""


def test_two_columns() -> None:
    snapshot = read(TWO)
    assert snapshot.form == "pip list"
    assert pins(snapshot) == {
        "flash-attn": "2.8.0.post2",
        "torch": "2.11.0+cu128",
        "triton-windows": "3.6.0.post25",
        "zmq-unknown": "0+unknown",
    }
    assert snapshot.cuda == "cu128"
    assert not snapshot.unread
    assert not snapshot.partial


def test_three_columns_with_windows_paths_and_a_warning() -> None:
    snapshot = read(THREE)
    assert only(snapshot, "kernels").source == "C:\\Users\\me me\\src\\kernels"
    assert only(snapshot, "recipes").source == "/home/me/recipes"
    assert only(snapshot, "torch").source == ""
    assert [each.line for each in snapshot.unread] == [7]


def test_more_columns_tell_who_installed_it() -> None:
    snapshot = read(VERBOSE)
    assert {each.name: each.manager for each in snapshot.distributions} == {
        "kernels": "pip",
        "numpy": "conda",
        "torch": "pip",
    }
    assert only(snapshot, "kernels").source == "/home/me/kernels"
    assert only(snapshot, "torch").source == ""


def test_columns_that_a_paste_has_collapsed() -> None:
    collapsed = "\n".join(" ".join(line.split()) for line in TWO.splitlines()) + "\n"
    assert pins(read(collapsed)) == pins(read(TWO))


def test_rows_without_their_header() -> None:
    snapshot = read("\n".join(THREE.splitlines()[3:6]) + "\n")
    assert snapshot.form == "pip list"
    assert pins(snapshot) == {"kernels": "0.0.1", "recipes": "1.0.dev0", "torch": "2.11.0+cu128"}
    assert only(snapshot, "recipes").source == "/home/me/recipes"


def test_only_what_is_outdated_is_a_part() -> None:
    text = "Package Version Latest Type\n------- ------- ------ -----\ntorch   2.10.0  2.15.0 wheel\n"
    assert read(text).partial
    assert pins(read(text)) == {"torch": "2.10.0"}
    listed = [{"name": "torch", "version": "2.10.0", "latest_version": "2.15.0", "latest_filetype": "wheel"}]
    assert read(json.dumps(listed)).partial


def test_uv_s_table_tells_python() -> None:
    assert read(f"Using Python 3.11.9 environment at: .venv\n{TWO}").python == "3.11.9"


def test_json_with_a_terminal_s_lines_around_it() -> None:
    entries = [
        {"name": "torch", "version": "2.11.0+cu130"},
        {"name": "Flash_Attn", "version": "2.8.0", "editable_project_location": "C:\\src\\flash"},
        {"name": "numpy", "version": "1.26.4", "installer": "conda"},
        {"name": "old", "version": "2.4.0ubuntu4"},
    ]
    for text in (json.dumps(entries), json.dumps(entries, indent=2)):
        snapshot = read(f"$ pip list --format=json\n{text}\n\n[notice] A new release of pip is available\n")
        assert snapshot.form == "pip list"
        assert pins(snapshot) == {
            "torch": "2.11.0+cu130",
            "flash-attn": "2.8.0",
            "numpy": "1.26.4",
            "old": "2.4.0ubuntu4",
        }
        assert only(snapshot, "flash-attn").source == "C:\\src\\flash"
        assert only(snapshot, "numpy").manager == "conda"
        assert not snapshot.unread


def test_json_that_is_cut_off_says_where() -> None:
    error = refusal('[{"name": "torch", "version": "2.11.0"},\n {"name": "tri')
    assert error.place.startswith("line 2")


@pytest.mark.parametrize(
    "entry", [{"name": "x"}, {"name": 3, "version": "1"}, "torch", None, {"name": "a b", "version": ""}]
)
def test_json_entries_that_say_nothing_are_listed(entry: object) -> None:
    good = [{"name": "torch", "version": "1"}, {"name": "numpy", "version": "2"}]
    snapshot = read(json.dumps([*good, entry]))
    assert pins(snapshot) == {"torch": "1", "numpy": "2"}
    assert len(snapshot.unread) == 1


def test_what_follows_the_json_is_listed() -> None:
    snapshot = read('[{"name": "torch", "version": "1"}]\ntriton==3.6.0\n')
    assert pins(snapshot) == {"torch": "1"}
    assert [each.line for each in snapshot.unread] == [2]


def test_an_empty_list_holds_nothing() -> None:
    refusal("[]\n")
    refusal("Package Version\n------- -------\n")


def test_two_tables_that_differ_are_refused() -> None:
    error = refusal(TWO + "\n" + TWO.replace("2.11.0+cu128", "2.10.0+cu128"))
    assert "torch 2.10.0+cu128" in error.found
