"""The project as a whole: nothing of the machine it was made on, links that lead somewhere, a version that is noted."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import bisect_env

ROOT = Path(__file__).parents[1]
TEXTS = (".py", ".md", ".toml", ".yaml", ".yml", ".cfg", ".sh", "")
FOREIGN = [
    # Put together here, so that this file does not hold what it looks for.
    "/wo" + "rk/",
    "../sha" + "red",
    "/opt/" + "envs",
    "/opt/" + "tools",
    "/ro" + "ot/",
    ".libr" + "ary/",
]


def files() -> Iterator[Path]:
    """What belongs to the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name and path.suffix in TEXTS and path.is_file():
            yield path


def test_nothing_of_the_machine_it_was_made_on() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {word}" for path in files() for word in FOREIGN if word in path.read_text("utf-8")
    ]
    assert not found


def test_links_between_documents_lead_somewhere() -> None:
    broken, seen = [], 0
    for path in files():
        if path.suffix != ".md":
            continue
        text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            seen += 1
            if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert seen and not broken


def anchors(path: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*?) *$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_version_is_in_the_changelog() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None and newest[1] == bisect_env.__version__


def test_what_the_readme_and_ci_call_exists() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    sessions = re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE)
    called = [name for line in re.findall(r"nox -s ([\w ]+)", text) for name in line.split()]
    assert called and set(called) <= set(sessions)
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    for name in re.findall(r"matrices/[\w.]+", text):
        assert (ROOT / name).is_file()
