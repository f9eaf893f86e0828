"""Wheels of this machine, whole and not."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bisect_env.errors import BadInput, BisectEnvError, InfrastructureError
from bisect_env.inspection.installed import running_standard_library
from bisect_env.inspection.records import Held
from bisect_env.inspection.wheels import fetch_ahead, open_wheel
from tests.support.wheels import Wheels

FILES: dict[str, str | bytes] = {
    "lib/__init__.py": "from lib.a import x\n",
    "lib/a.py": "x = 1\n" * 50,
    "lib/sub/b.py": "y = 2\n",
    "lib/_c.cpython-312-x86_64-linux-gnu.so": b"\x7fELF",
    "lib-1.0.data/purelib/side/__init__.py": "side = True\n",
    "lib-1.0.data/scripts/tool.py": "no = True\n",
}
BENEATH = running_standard_library()


@pytest.fixture
def path(wheels: Wheels) -> Path:
    return wheels.wheel("lib", "1.0", files=FILES)


def test_modules_of_a_wheel(path: Path) -> None:
    place = open_wheel(path, BENEATH)
    assert place.label == "lib 1.0"
    module = place.module("lib.a")
    assert module is not None
    assert (module.path, module.text, module.package) == ("lib/a.py", FILES["lib/a.py"], False)
    assert place.submodules("lib") == ("_c", "a", "sub")
    assert place.holds("lib._c") is Held.EXTENSION and place.module("lib._c") is None
    assert place.holds("lib.sub") is Held.SOURCE
    assert place.holds("lib.json") is Held.ABSENT and place.holds("numpy") is Held.ABSENT
    side = place.module("side")
    assert side is not None and side.path == "side/__init__.py"
    assert set(place.digests()) == {"lib/__init__.py", "lib/a.py", "lib/sub/b.py", "side/__init__.py"}
    fetch_ahead(place, ["lib.a", "lib.sub", "nothing"])
    fetch_ahead(BENEATH, ["json"])


def test_the_standard_library_lies_beneath(path: Path) -> None:
    place = open_wheel(path, BENEATH)
    assert place.holds("json.decoder") is Held.SOURCE and place.holds("sys") is Held.EXTENSION
    text = place.module("json")
    assert text is not None and "JSONDecoder" in text.text
    assert "decoder" in place.submodules("json") and {"lib", "json", "side"} <= set(place.submodules(""))


def test_not_there_not_a_wheel_and_cut_short(path: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        open_wheel(tmp_path / "x-1-py3-none-any.whl", BENEATH)
    with pytest.raises(BadInput, match="not the name of a wheel"):
        open_wheel(tmp_path / "x.whl", BENEATH)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(BadInput, match=r"(?s)not a whole wheel.*copied or downloaded"):
        open_wheel(path, BENEATH)


def test_a_damaged_member_is_told_and_the_others_are_read(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("lib/a.py").header_offset + 30 + len("lib/a.py") + 3
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    place = open_wheel(path, BENEATH)
    assert place.module("lib") is not None
    with pytest.raises(InfrastructureError, match=r"lib/a\.py in .* is damaged"):
        place.module("lib.a")


def test_a_module_of_a_size_that_nobody_writes(wheels: Wheels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bisect_env.inspection.wheels.LARGEST", 100)
    place = open_wheel(wheels.wheel("lib", "1.0", files=FILES), BENEATH)
    assert place.module("lib") is not None
    with pytest.raises(InfrastructureError, match="300 bytes: not read"):
        place.module("lib.a")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_wrong_with_a_wheel_is_told_or_harmless(wheels: Wheels, data: st.DataObject) -> None:
    path = wheels.wheel("lib", "1.0", files=FILES)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        place = open_wheel(path, BENEATH)
        place.digests(), place.submodules("lib")
        module = place.module("lib.a")
    except BisectEnvError:
        return
    assert module is None or module.text == FILES["lib/a.py"]
