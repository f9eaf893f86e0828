"""``bisect-env inspect`` and ``matrix --static`` as a user runs them: real processes, wheels on a loopback index."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import IndexChoice
from tests.support.environments import built
from tests.support.index import Index, refusing_url
from tests.support.racing import World
from tests.support.schemas import matching
from tests.support.wheels import Wheels

FLAG = "lib.state._flag"
GLOBAL = {
    "lib/__init__.py": "from lib.core import work\n",
    "lib/core.py": (
        "from lib import state\n\n"
        "DISABLE_DEBUG = False\n\n"
        "def work(x, scale=None):\n    return helper(x)\n\n"
        "def helper(x):\n    state.trace(x)\n    return x\n\n"
        "def called_back(table, x):\n    return table['f'](x)\n"
    ),
    "lib/state.py": (
        "_flag = False\n\ndef trace(x):\n    global _flag\n    _flag = True\n\ndef tracing():\n    return _flag\n"
    ),
}
LOCAL = {
    **GLOBAL,
    "lib/core.py": GLOBAL["lib/core.py"].replace("scale=None", "scale: float = 1.0, *, aux=None"),
    "lib/state.py": (
        "import threading\n\n_flag_tls = threading.local()\n\n"
        "def trace(x):\n    _flag_tls.flag = True\n\ndef tracing():\n    return _flag_tls.flag\n"
    ),
}
SCRIPT = """\
import sys
import threading
from lib import core, state
thread = threading.Thread(target=core.called_back, args=({"f": state.trace}, 1))
thread.start()
thread.join()
if "hang" in sys.argv:
    import time
    time.sleep(600)
if "fail" in sys.argv:
    raise SystemExit(7)
"""


def run(folder: Path, *args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bisect_env", "inspect", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        **options,  # type: ignore[call-overload]
    )


@pytest.fixture
def offered(index: Index, wheels: Wheels) -> Index:
    """Versions 1.0 and 1.1 with a flag of the process, 2.0 with one of each thread; parts of files are served."""
    for version, files in (("1.0.0", GLOBAL), ("1.1.0", GLOBAL), ("2.0.0", LOCAL)):
        index.add(wheels.wheel("lib", version, files=files))
    index.parts = True
    return index


@pytest.fixture
def environment(tmp_path: Path, wheels: Wheels, uv: Uv) -> Path:
    return built([wheels.wheel("lib", "1.0.0", files=GLOBAL)], tmp_path / "root", uv).folder


def test_the_surface_of_an_environment(tmp_path: Path, environment: Path) -> None:
    told = run(tmp_path, "lib.core", "--in", str(environment), "--match", "debug|DEBUG")
    assert (told.returncode, told.stderr) == (0, "")
    assert "- DISABLE_DEBUG = False  [value, debug switch, line 3]" in told.stdout
    assert "1 place on this machine" in told.stdout and "nothing was installed" in told.stdout


def test_a_signature_through_a_re_export(tmp_path: Path, environment: Path) -> None:
    told = run(tmp_path, "lib.work", "--in", str(environment))
    assert "Signature: (x, scale=None)" in told.stdout
    assert "function lib.core.work, lib/core.py, line 5" in told.stdout


def test_a_scan_follows_calls_and_says_how_far(tmp_path: Path, environment: Path) -> None:
    where = ("lib.work", "--in", str(environment))
    found = run(tmp_path, *where, "--scan", "_flag = ")
    assert "1 hit in 3 functions reachable in 6 steps" in found.stdout
    assert "lib/state.py:5: _flag = True" in found.stdout and "by lib.core:helper, lib/core.py:9" in found.stdout
    null = run(tmp_path, *where, "--scan", "_flag = ", "--depth", "0")
    assert "0 hits in 1 function by itself; 1 function called at the last step not read (--depth 1)" in null.stdout
    assert null.returncode == 0


def test_fail_on_hit_is_for_continuous_integration(tmp_path: Path, environment: Path) -> None:
    where = ("lib.work", "--in", str(environment), "--fail-on-hit", "--scan")
    assert run(tmp_path, *where, "_flag").returncode == 1
    assert run(tmp_path, *where, "nothing like it").returncode == 0


def test_unresolved_calls_are_listed(tmp_path: Path, environment: Path) -> None:
    told = run(tmp_path, "lib.core.called_back", "--in", str(environment), "--scan", "_flag", "--unresolved")
    assert "1 call could not be resolved" in told.stdout and "lib/core.py:13: table['f']" in told.stdout


def test_a_trace_shows_calls_that_the_text_does_not(tmp_path: Path, environment: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    where = ("lib.core.called_back", "--in", str(environment), "--scan", "_flag = ")
    assert "0 hits" in run(tmp_path, *where).stdout
    told = run(tmp_path, *where, "--trace", "train.py", "--", "fail")
    assert told.returncode == 0, told.stderr
    assert "1 hit in 2 functions" in told.stdout
    assert "by lib.core:called_back, lib/core.py:13, as the run did" in told.stdout
    assert "train.py ended with status 7" in told.stdout


def test_a_trace_that_does_not_end_is_ended(tmp_path: Path, environment: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    where = ("lib.core.called_back", "--in", str(environment), "--scan", "_flag = ", "--trace", "train.py")
    told = run(tmp_path, *where, "--timeout", "3", "--", "hang")
    assert told.returncode == 0, told.stderr
    assert "was ended at the time limit" in told.stdout and "1 hit" in told.stdout


def test_a_script_that_cannot_run_says_what_it_printed(tmp_path: Path, environment: Path) -> None:
    (tmp_path / "train.py").write_text("import nothing_of_that_name\n")
    where = ("lib.work", "--in", str(environment), "--scan", "x", "--trace")
    told = run(tmp_path, *where, "train.py")
    assert told.returncode == 2 and "ModuleNotFoundError" in told.stderr and "ended with status 1" in told.stderr
    gone = run(tmp_path, *where, "none.py")
    assert gone.returncode == 2 and "none.py: there is no such file" in gone.stderr


def test_versions_on_an_index_are_compared_without_installing(tmp_path: Path, offered: Index) -> None:
    told = run(tmp_path, "lib.work", "--in", "lib==1.0..2.0", "--index", offered.url, "--json", "out.json")
    assert (told.returncode, told.stderr) == (0, "")
    assert "scale=None became scale: float = 1.0" in told.stdout and "with aux=None" in told.stdout
    assert "3 wheels on the index" in told.stdout
    document = matching("inspect", json.loads((tmp_path / "out.json").read_text()))
    assert document["changes"][0]["steps"] == ["", "changed"]
    assert document["cost"]["wheels"] == 3
    assert not (tmp_path / ".bisect-env" / "environments").exists()


def test_who_sets_a_flag_and_what_stands_in_its_place(tmp_path: Path, offered: Index) -> None:
    told = run(tmp_path, FLAG, "--in", "lib==1.0...2.0", "--uses", "--index", offered.url, "--markdown", "out.md")
    assert told.returncode == 0, told.stderr
    assert f"Who sets and who reads {FLAG}" in told.stdout and "Shared by the whole process." in told.stdout
    assert "- sets: lib.state:trace, lib/state.py:5: _flag = True" in told.stdout
    assert "lib 2.0.0: no lib.state._flag" in told.stdout
    assert "Who sets and who reads lib.state._flag_tls" in told.stdout
    assert "Shared by a thread of its own." in told.stdout
    assert "## Who sets" in (tmp_path / "out.md").read_text()


def test_uses_within_a_part_say_so(tmp_path: Path, offered: Index) -> None:
    where = (FLAG, "--in", "lib==1.0.0", "--uses", "--index", offered.url, "--within")
    told = run(tmp_path, *where, "lib.core")
    assert "Files looked through (of lib.core alone): 2 in lib 1.0.0" in told.stdout
    wrong = run(tmp_path, *where, "lib.cor")
    assert wrong.returncode == 2 and "lib.cor is in none of the places" in wrong.stderr


def test_a_difference_between_two_versions(tmp_path: Path, offered: Index) -> None:
    told = run(
        tmp_path, "lib.state.trace", "--diff", "--in", "lib==1.0.0", "--in", "lib==2.0.0", "--index", offered.url
    )
    assert told.returncode == 0, told.stderr
    assert "+    _flag_tls.flag = True" in told.stdout and "Difference from lib 1.0.0 to lib 2.0.0" in told.stdout
    same = run(tmp_path, "lib.core", "--diff", "--in", "lib==1.0...1.1", "--index", offered.url)
    assert "No difference." in same.stdout


def test_a_second_reading_needs_no_network(tmp_path: Path, offered: Index) -> None:
    where = ("lib.work", "--in", "lib==1.0.0", "--index", offered.url)
    assert run(tmp_path, *where).returncode == 0
    offered.stop()
    told = run(tmp_path, *where, "--offline")
    assert told.returncode == 0, told.stderr
    assert "all kept from an earlier reading" in told.stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("lib.core.wrok",), 2, "nearest: lib.core.work"),
        (("nothing.at.all",), 2, "or the whole of its name, from the package on"),
        (("lib.core.zzzzzz",), 2, "wanted: lib.core --match REGEX, to look for it there"),
        (("two words",), 2, "is no name of a module"),
        (("lib.core", "--match", "("), 2, "--match: '(' is no regular expression"),
        (("lib.core", "--scan", "*"), 2, "--scan: '*' is no regular expression"),
        (("lib.core", "more"), 2, "'more', and no --trace"),
        (("lib.core", "--diff"), 2, "--diff: 1 place\n  wanted: two: --in A --in B"),
        (("lib.core", "--within", "lib"), 2, "--within: no --uses"),
        (("lib.core", "--fail-on-hit"), 2, "--fail-on-hit: no scan"),
        (("lib.core", "--uses"), 2, "lib.core is no module-level name"),
        (("lib.work", "--trace", "x.py"), 2, "--trace: nothing to scan for"),
        (("lib.core", "--json", "no/such/folder.json"), 2, "there is no folder no/such"),
    ],
)
def test_what_cannot_be_asked_is_said(
    tmp_path: Path, environment: Path, args: tuple[str, ...], code: int, words: str
) -> None:
    told = run(tmp_path, *args, "--in", str(environment))
    assert (told.returncode, told.stdout) == (code, ""), told.stderr
    assert words in told.stderr and "Traceback" not in told.stderr


def test_no_place_and_places_that_are_none(tmp_path: Path) -> None:
    told = run(tmp_path, "lib.core")
    assert told.returncode == 2 and "no place to read it from" in told.stderr and "--cells MATRIX" in told.stderr
    for word in ("nothing", "./nothing", "nothing.whl", "cell:nothing"):
        told = run(tmp_path, "lib.core", "--in", word)
        assert told.returncode == 2, word
        assert "nothing" in told.stderr and "Traceback" not in told.stderr


def test_a_script_runs_in_an_environment_alone(tmp_path: Path, offered: Index) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    where = ("lib.work", "--scan", "x", "--trace", "train.py", "--index", offered.url, "--in", "lib==1.0.0")
    told = run(tmp_path, *where)
    assert told.returncode == 2 and "'lib==1.0.0' is nothing that a script can be run in" in told.stderr
    told = run(tmp_path, *where, "--in", "lib==2.0.0")
    assert told.returncode == 2 and "2 places: a script runs in one" in told.stderr


def test_no_network_is_infrastructure(tmp_path: Path) -> None:
    told = run(tmp_path, "lib.core", "--in", "lib==1.0.0", "--index", refusing_url())
    assert told.returncode == 5 and "refuses connections" in told.stderr and told.stdout == ""


def test_a_server_without_parts_gives_small_wheels_whole(tmp_path: Path, offered: Index) -> None:
    offered.parts = False
    told = run(tmp_path, "lib.work", "--in", "lib==1.0.0", "--index", offered.url)
    assert told.returncode == 0, told.stderr
    assert "was fetched whole" in told.stdout


def test_the_reader_may_go_away(tmp_path: Path, environment: Path) -> None:
    line = f"set -o pipefail; {sys.executable} -m bisect_env inspect lib.core --in {environment} | true"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_ends_the_script_too(tmp_path: Path, environment: Path) -> None:
    (tmp_path / "train.py").write_text(f"import os\nopen('pid', 'w').write(str(os.getpid()))\n{SCRIPT}")
    args = ("lib.work", "--in", str(environment), "--scan", "x", "--trace", "train.py", "--", "hang")
    process = subprocess.Popen(
        [sys.executable, "-m", "bisect_env", "inspect", *args], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 40
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=40)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


MATRIX = "axes: {torch: [1.0.0, 2.0.0]}\ntrials: 1\ncontrols: 1\n"
TORCH = {
    "torch/fx/__init__.py": "",
    "torch/fx/_symbolic_trace.py": "_flag = False\n\ndef is_fx_tracing():\n    return _flag\n",
    "torch/compiler/__init__.py": "_compiling = False\n\ndef is_compiling():\n    return _compiling\n",
    "torch/_dynamo/__init__.py": "",
    "torch/_dynamo/convert_frame.py": "def compile_inner(): pass\n",
}
NEWER = TORCH | {
    "torch/fx/_symbolic_trace.py": (
        "import threading\n_tls = threading.local()\n\ndef is_fx_tracing():\n    return _tls.flag\n"
    ),
    "torch/_dynamo/convert_frame.py": "import torch\n\ndef compile_inner():\n    torch.compiler._compiling = True\n",
}


@pytest.fixture
def torches(world: World) -> World:
    world.torch("1.0.0", files=TORCH)
    world.torch("2.0.0", files=NEWER)
    world.index.parts = True
    world.matrix(MATRIX)
    return world


def test_facts_of_cells_before_anything_is_built(torches: World) -> None:
    told = torches.run("matrix", "matrix.yaml", "--static")
    assert told.returncode == 0, told.stderr
    rows = {line.split("  ")[0]: line for line in told.stdout.splitlines()}
    assert "process-wide  not set by compiles" in rows["torch-1.0.0"]
    assert "per thread" in rows["torch-2.0.0"] and "process-wide in compiles" in rows["torch-2.0.0"]
    assert "unknown [1]" in rows["torch-1.0.0"]
    assert "[1] there is no torch.utils._config_module" in told.stdout
    assert not (torches.store / "environments").exists()
    both = torches.run("matrix", "matrix.yaml", "--static", "--dry-run")
    assert "to build" in both.stdout and "tracing flag" in both.stdout


def test_a_row_a_torch_however_many_cells_it_has(torches: World) -> None:
    torches.matrix(f"{MATRIX}conditions: {{threads: [2, 3, 4]}}\n")
    told = torches.run("matrix", "matrix.yaml", "--static")
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("process-wide  not set by compiles") == told.stdout.count("per thread ") == 1
    assert "torch=1.0.0 (3 cells)" in told.stdout and "torch=2.0.0 (3 cells)" in told.stdout


@pytest.mark.parametrize("asked", [("--static",), ("--dry-run",), ("--static", "--dry-run")])
def test_what_is_told_before_anything_is_built_is_a_document_too(torches: World, asked: tuple[str, ...]) -> None:
    files = ("--json", "plan.json", "-o", "plan.txt", "--html", "plan.html", "--junit", "plan.xml")
    told = torches.run("matrix", "matrix.yaml", *asked, *files)
    assert told.returncode == 0, told.stderr
    found = matching("matrix-plan", json.loads((torches.folder / "plan.json").read_text()))
    assert (torches.folder / "plan.txt").read_text() == told.stdout
    assert [key for key in ("run", "static") if found[key]] == sorted(
        {"--dry-run": "run", "--static": "static"}[option] for option in asked
    )
    if found["run"]:
        assert [cell["id"] for cell in found["run"]["cells"]] == ["torch-1.0.0", "torch-2.0.0"]
        assert found["run"]["environments"] == 2 and found["run"]["trials"] == 6 and found["run"]["seconds"] is None
    if found["static"]:
        facts = {
            each["torch"]: (each["tracing"]["scope"], each["compiling"]["held"]) for each in found["static"]["torches"]
        }
        assert facts == {"1.0.0": ("process", False), "2.0.0": ("thread", True)}
    for option in ("html", "junit"):
        assert f"--{option}: nothing was tried, so that file is not written" in told.stderr
    assert not list(torches.folder.glob("plan.html")) and not list(torches.folder.glob("plan.xml"))
    printed = torches.run("matrix", "matrix.yaml", *asked, "--json", "-", "--format", "github")
    assert matching("matrix-plan", json.loads(printed.stdout))["matrix"] == "tiny"
    assert not (torches.store / "environments").exists() and not torches.trials(counted=False)


def test_a_base_tells_which_torch_is_its_own(torches: World, uv: Uv) -> None:
    base = torches.folder / "host" / "bin" / "python"
    uv.run(["venv", "--quiet", str(base.parent.parent)])
    index = IndexChoice(urls=(torches.index.url,))
    assert uv.run(["pip", "install", "--quiet", "-p", str(base), "torch==1.0.0"], index=index).ok
    torches.index.add(torches.wheels.wheel("lib", "1.0", files={"lib/__init__.py": ""}))
    torches.matrix(f"base: {base}\naxes: {{lib: ['1.0']}}\nconditions: {{threads: [2, 3]}}\ntrials: 1\ncontrols: 1\n")
    told = torches.run("matrix", "matrix.yaml", "--static")
    assert told.returncode == 0, told.stderr
    assert re.search(r"all \(2 cells\) +1\.0\.0 +process-wide", told.stdout), told.stdout


def test_cells_built_or_not(torches: World) -> None:
    first = torches.run("inspect", "torch.fx._symbolic_trace", "--cells", "matrix.yaml")
    assert first.returncode == 0, first.stderr
    assert "torch 1.0.0 is what torch-1.0.0 has (not built: read from the index)" in first.stdout
    assert torches.run("matrix", "matrix.yaml", "--cell", "torch-1.0.0").returncode == 0
    built = torches.run("inspect", "torch.fx._symbolic_trace", "--in", "cell:torch-1.0.0", "--match", "flag")
    assert built.returncode == 0, built.stderr
    assert "torch 1.0.0 is what torch-1.0.0 has (its environment)" in built.stdout
    assert "- _flag = False" in built.stdout
