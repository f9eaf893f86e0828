"""``--html`` of every command that reports: real runs, and what becomes of the file."""

from __future__ import annotations

from pathlib import Path

from tests.report.html.reading import Element, read
from tests.support.bisecting import Suspects
from tests.support.gating import Gates
from tests.support.racing import World

BODY = "axes: {torch: [2.11.0, 2.14.1], transformers: [5.8.1]}\ntrials: 4\ncontrols: 4\n"


def page(path: Path) -> Element:
    """The document in the file."""
    return read(path.read_text("utf-8"))


def test_a_matrix_and_its_report_from_the_store(world: World) -> None:
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    run = world.run("matrix", "matrix.yaml", "--html", "run.html")
    assert run.returncode == 0, run.stderr
    assert "RACE 4/4" in run.stdout, "the table is printed all the same"
    again = world.run("report", "matrix.yaml", "--html", "again.html", "--json", "-")
    assert again.returncode == 0 and again.stdout.startswith("{"), again.stderr
    pages = [page(world.folder / name) for name in ("run.html", "again.html")]
    for each in pages:
        cells = each.all("a", "cell")
        assert [cell.get("data-headline") for cell in cells] == ["RACE", "FULL"]
        assert all(trial in each.text for trial in (row[0] for row in world.trials()))
        assert "Where and when" in [heading.text for heading in each.all("h2")]
    assert pages[0].all("table", "grid")[0].text == pages[1].all("table", "grid")[0].text


def test_a_bisection_and_its_plan(world: World) -> None:
    suspects = Suspects(world)
    for name in ("alpha", "beta"):
        suspects.offer(name, {"1.0": 0.0, "1.1": 1.0 if name == "alpha" else 0.0})
    good, bad = (str(suspects.freeze(f"{v}.txt", alpha=v, beta=v)) for v in ("1.0", "1.1"))
    suspects.command()
    command = ("--", "python", str(world.folder / "draw.py"), "alpha")
    sides = ("--good", good, "--bad", bad, "--index", world.index.url)
    plan = world.run("bisect", *sides, "--dry-run", "--html", "plan.html", *command)
    assert plan.returncode == 0 and "nothing was tried" in plan.stderr, plan.stderr
    assert not (world.folder / "plan.html").exists()
    run = world.run("bisect", *sides, "--html", "found.html", *command)
    assert run.returncode == 0, run.stderr
    again = world.run("bisect", "resume", "--html", "again.html")
    assert again.returncode == 0, again.stderr
    for name in ("found.html", "again.html"):
        found = page(world.folder / name)
        assert "Which difference" in [heading.text for heading in found.all("h3")]
        assert "CULPRIT" in found.all("span", "badge")[0].text
        assert "alpha" in found.all("ul", "legend")[0].all("li")[0].text


def test_a_gate_that_fails(world: World) -> None:
    gates = Gates(world)
    gates.offer("1.0", tokens=1000)
    gates.offer("2.0", tokens=1000, race=1.0)
    baseline, candidate = (str(gates.freeze(f"{version}.txt", engine=version)) for version in ("1.0", "2.0"))
    done, document = gates.run("--baseline", baseline, "--candidate", candidate, "--html", "gate.html")
    assert done.returncode == 1, done.stderr
    found = page(world.folder / "gate.html")
    blocks = {block.get("id"): block for block in found.all("article", "question")}
    for line in document["lines"]:
        block = blocks[f"question-{line['question']}"]
        assert line["sentence"] in block.text and line["decision"].upper() in block.all("h3")[0].text.upper()
    assert "FAIL" in found.all("span", "decision")[0].text
    assert "bisect-env bisect" in found.text
