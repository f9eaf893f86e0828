"""Slurm's commands pretended, for what a real Slurm says too rarely: a folder of jobs' states that a test writes."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SBATCH = """\
import json, os, pathlib, re, sys
home = pathlib.Path({home!r})
text = pathlib.Path(sys.argv[-1]).read_text()
calls = home / "sbatch.jsonl"
with calls.open("a") as file:
    file.write(json.dumps({{"argv": sys.argv[1:], "script": text, "env": dict(os.environ)}}) + "\\n")
count = int(re.search(r"--array=0-(\\d+)", text)[1]) + 1
most = home / "most"
refusal = home / "refusal"
arrives = not refusal.exists()
said = refusal.read_text() if not arrives else ""
if most.exists() and count > int(most.read_text().split()[0]):
    arrives, said = False, (home / "most").read_text().partition(" ")[2]
exclude = re.search(r"--exclude=(\\S+)", text)
if exclude and (home / "single").exists():
    arrives, said = False, "sbatch: error: Batch job submission failed: Requested node configuration is not available"
if said.startswith("arrives "):
    arrives = True
if arrives:
    number = len(list((home / "jobs").glob("*_0"))) + 1
    name = re.search(r"--job-name=(\\S+)", text)[1]
    for index in range(count):
        (home / "jobs" / f"{{number}}_{{index}}").write_text(f"{{name}}|PENDING||Priority")
if said:
    sys.exit(said)
print(f"Submitted batch job {{number}}")
"""
SQUEUE = """\
import pathlib, sys
home = pathlib.Path({home!r})
with (home / "squeue.calls").open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
if (home / "silent").exists():
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
names = next(word for word in sys.argv if word.startswith("--name="))[7:].split(",")
for path in sorted((home / "jobs").iterdir()):
    if path.read_text().split("|")[0] in names and "|GONE|" not in path.read_text():
        print(f"{{path.name}}|{{path.read_text()}}")
"""
SCANCEL = """\
import pathlib, sys
home = pathlib.Path({home!r})
if (home / "silent").exists():
    sys.exit("scancel: error: Unable to contact slurm controller (connect failure)")
for word in sys.argv[1:]:
    for path in (home / "jobs").iterdir():
        name, state, node, reason = path.read_text().split("|")
        ours = word in (path.name, path.name.partition("_")[0], f"--name={{name}}")
        if ours and state in ("PENDING", "RUNNING"):
            path.write_text(f"{{name}}|CANCELLED|{{node}}|None")
"""


class Pretended:
    """What the commands find, and what they were asked."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        (home / "jobs").mkdir(parents=True)
        (home / "bin").mkdir()
        for name, text in {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL, "srun": ""}.items():
            path = home / "bin" / name
            path.write_text(f"#!{sys.executable} -I\n{text.format(home=str(home))}")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")

    def jobs(self) -> dict[str, str]:
        """Of each job its state."""
        return {path.name: path.read_text().split("|")[1] for path in sorted((self.home / "jobs").iterdir())}

    def becomes(self, job: str, state: str, node: str = "", reason: str = "None") -> None:
        """A job's state changes; ``GONE``: the queue no longer has it."""
        path = self.home / "jobs" / job
        path.write_text(f"{path.read_text().split('|')[0]}|{state}|{node}|{reason}")

    def says(self, name: str, text: str = "") -> None:
        """What the commands do from now on.

        ``refusal``: what sbatch says; ``most``: jobs of an array at most, and what it says of more; ``single``: there
        is one node; ``silent``: squeue and scancel do not answer.
        """
        (self.home / name).write_text(text)

    def no_longer(self, name: str) -> None:
        """As before :meth:`says`."""
        (self.home / name).unlink()

    @property
    def submitted(self) -> list[Mapping[str, str]]:
        """Scripts and variables of every sbatch."""
        path = self.home / "sbatch.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
