# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "click>=8.1",
#     "filelock>=3.16",
#     "jinja2>=3.1.5",
#     "junitparser>=5",
#     "nox[uv]>=2025.5",
#     "numpy>=1.26",
#     "nvidia-ml-py>=12.560",
#     "packaging>=26.0",
#     "psutil>=6",
#     "pydantic>=2.9",
#     "pypi-simple>=1.6",
#     "pyyaml>=6.0.1",
#     "requests>=2.31",
#     "rich>=13.9",
#     "scipy>=1.13",
#     "tabulate>=0.9",
#     "uv>=0.13",
# ]
# ///
"""Sessions: `nox -s matrix` is the main job, `nox -s tests` the tests, `nox -l` lists the rest.

Everything after `--` goes to the command: `nox -s matrix -- my.yaml --dry-run`, `nox -s matrix -- --help`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from bisect_env.engine.defaults import default_matrix  # noqa: E402  (the package lies beside this file)
from bisect_env.errors import BisectEnvError  # noqa: E402
from bisect_env.matrix.loading import load  # noqa: E402

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv"
nox.options.sessions = ["tests", "lint", "typecheck"]
nox.options.error_on_missing_interpreters = True


def bisect_env(*args: str) -> None:
    """Run the command line in a process of its own, and end with its exit code when that is not 0.

    In the environment that nox made from the block above, so that no second one is needed, and not through
    `session.run`, which would turn every exit code but 0 into 1.
    """
    process = subprocess.Popen([sys.executable, "-m", "bisect_env", *args], cwd=ROOT)
    # A terminal's Ctrl-C reaches it too, the end of a CI job does not. Either way it ends its children and prints what
    # it has measured: that is waited for.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminate = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    if code:
        raise SystemExit(code)


def default_cells() -> list[object]:
    """One parameter set a cell of the default matrix; none when it cannot be read (`matrix` then says why)."""
    try:
        matrix = load(default_matrix()[0])
    except BisectEnvError:
        return []
    return [nox.param(cell.id, id=cell.id, tags=list(cell.tags)) for cell in matrix.cells]


@nox.session(venv_backend="none")
def matrix(session: nox.Session) -> None:
    """Which torch x transformers combinations race, go dense, or stay fast: `-- FILE`, `-- --help`."""
    bisect_env("matrix", *session.posargs)


@nox.session(venv_backend="none")
@nox.parametrize("name", default_cells())
def cell(session: nox.Session, name: str) -> None:
    """One cell of the default matrix."""
    bisect_env("matrix", "--cell", name, *session.posargs)


@nox.session(venv_backend="none")
def bisect(session: nox.Session) -> None:
    """The culprit between a good and a bad environment: `-- --good good.txt --bad bad.txt`, `-- --help`."""
    bisect_env("bisect", *session.posargs)


@nox.session(venv_backend="none")
def gate(session: nox.Session) -> None:
    """May this change touch the training hosts: `-- --baseline now.txt --upgrade NAME==VERSION`, `-- --help`."""
    bisect_env("gate", *session.posargs)


@nox.session(venv_backend="none")
def explain(session: nox.Session) -> None:
    """Why a cell fails: which thread did what to which: `-- CELL`, `-- --help`."""
    bisect_env("explain", *session.posargs)


@nox.session(venv_backend="none")
def inspect(session: nox.Session) -> None:
    """Signatures, a scan through calls, who sets a flag, in several versions: `-- NAME --in torch==2.8..2.15`."""
    bisect_env("inspect", *session.posargs)


@nox.session(venv_backend="none")
def report(session: nox.Session) -> None:
    """The table of what a store holds, here or brought from another host: `-- FILE --store DIR`."""
    bisect_env("report", *session.posargs)


@nox.session(venv_backend="none")
def history(session: nox.Session) -> None:
    """Verdicts from run to run, and what changed with them: `-- FILE --store DIR`."""
    bisect_env("history", *session.posargs)


@nox.session(venv_backend="none")
def show(session: nox.Session) -> None:
    """Everything known about a cell, a trial, an environment or a run: `-- ID`."""
    bisect_env("show", *session.posargs)


@nox.session(venv_backend="none")
def bundle(session: nox.Session) -> None:
    """What a host without a network needs for a matrix, in parts: `-- FILE -o DIR`."""
    bisect_env("bundle", *session.posargs)


@nox.session(venv_backend="none")
def unbundle(session: nox.Session) -> None:
    """Take in what has arrived of a bundle: `-- DIR`; then `matrix -- FILE --bundle DIR`."""
    bisect_env("unbundle", *session.posargs)


@nox.session(venv_backend="none")
def clean(session: nox.Session) -> None:
    """What environments and caches take on disk; frees what no cell needs."""
    bisect_env("clean", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The tests: real processes and real uv on tiny wheels; no torch, no GPU."""
    session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test"))
    # Where there is a Slurm, its tests would be timed beside these: they have a session of their own.
    session.run("pytest", *(session.posargs or ["-n", "3", "--dist", "worksteal", "--ignore=tests/slurm"]))


@nox.session
def torch_tests(session: nox.Session) -> None:
    """The reproducers' tests under a real torch: BISECT_ENV_TEST_TORCH names an interpreter that has it."""
    if not os.environ.get("BISECT_ENV_TEST_TORCH"):
        session.skip("BISECT_ENV_TEST_TORCH names no interpreter that has torch and transformers")
    session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test"))
    names = ("test_dflash_torch.py", "test_dflash_planted.py", "test_witness_torch.py")
    session.run("pytest", *(f"tests/reproducers/{name}" for name in names))


@nox.session
def ssh_tests(session: nox.Session) -> None:
    """Hosts captured through a real sshd on loopback; BISECT_ENV_REQUIRE_SSHD: that there is none is an error."""
    places = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    missing = [name for name in ("ssh", "ssh-keygen", "sshd") if shutil.which(name, path=places) is None]
    if missing:
        say = session.error if os.environ.get("BISECT_ENV_REQUIRE_SSHD") else session.skip
        say(f"there is no {' and no '.join(missing)}: install openssh-server")
    session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test"))
    session.run("pytest", *(session.posargs or ["-n", "3", "tests/ssh"]))


@nox.session
def slurm_tests(session: nox.Session) -> None:
    """Trials on a real Slurm of two pretended nodes; BISECT_ENV_REQUIRE_SLURM: that there is none is an error."""
    places = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name, path=places) is None]
    if missing:
        say = session.error if os.environ.get("BISECT_ENV_REQUIRE_SLURM") else session.skip
        say(f"there is no {' and no '.join(missing)}: install slurm-wlm and munge")
    session.install("-e", ".[slurm]", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test"))
    if session.posargs:
        session.run("pytest", *session.posargs)
        return
    alone = "tests/slurm/test_speed.py"  # What it times would be the others' work, too.
    session.run("pytest", "-s", alone)
    # Most of them wait for jobs most of the time.
    session.run("pytest", "-n", "5", "--dist", "worksteal", "tests/slurm", f"--ignore={alone}")


@nox.session
def browser_tests(session: nox.Session) -> None:
    """The HTML reports in a real Chromium; BISECT_ENV_REQUIRE_BROWSER: that there is none is an error."""
    named = os.environ.get("BISECT_ENV_TEST_BROWSER")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        say = session.error if os.environ.get("BISECT_ENV_REQUIRE_BROWSER") else session.skip
        say(f"there is no {' and no '.join(names)}: install chromium, or name one by BISECT_ENV_TEST_BROWSER")
    session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test"))
    session.install(*nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "browser"))
    variables = {"BISECT_ENV_TEST_BROWSER": str(found)}
    session.run("pytest", *(session.posargs or ["tests/report/html/test_browser.py"]), env=variables)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, and the one direction of imports."""
    session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def typecheck(session: nox.Session) -> None:
    """mypy --strict."""
    session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "typecheck"))
    session.run("mypy")


if __name__ == "__main__":
    nox.main()
