"""The accounts of trials that were witnessed on an H200: each failed thread of each is explained."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from bisect_env.engine.recall import StoredReleases
from bisect_env.explanation.recalled import recalled
from bisect_env.explanation.records import Consequence, Explanation, Mechanism, State
from bisect_env.matrix.loading import load
from bisect_env.store.database import Store
from bisect_env.trials import reproducers

ROOT = Path(__file__).parents[2]
CELL = "torch-{}_transformers-5.8.1_attention-transformers"


def explained(folder: Path, store: str, torch: str) -> Explanation:
    path = folder / "store.sqlite"
    path.write_bytes(lzma.decompress((ROOT / "docs" / "results" / f"{store}.sqlite.xz").read_bytes()))
    with Store(path, read_only=True) as opened:
        matrix = load(ROOT / "matrices" / "h200.yaml", StoredReleases(opened))
        [cell] = [cell for cell in matrix.cells if cell.id == CELL.format(torch)]
        found, _ = recalled(cell, reproducers.prepare(matrix.reproducer), opened)
    return found


@pytest.mark.parametrize(
    ("store", "torch", "trials", "threads", "mechanisms"),
    [
        ("explain-h200-torch-2.11", "2.11.0", 6, 10, {Mechanism.FOREIGN_TRACE}),
        ("explain-h200-torch-2.13-2.14", "2.13.0", 8, 24, {Mechanism.ANNOTATION, Mechanism.KERNEL}),
        ("explain-h200-torch-2.13-2.14", "2.14.1", 6, 18, {Mechanism.ANNOTATION, Mechanism.KERNEL}),
    ],
)
def test_every_failed_thread_is_explained(
    tmp_path: Path, store: str, torch: str, trials: int, threads: int, mechanisms: set[Mechanism]
) -> None:
    found = explained(tmp_path, store, torch)
    assert (found.failed, len(found.accounts)) == (trials, trials)
    collisions = [collision for account in found.accounts for collision in account.collisions]
    failed = [collision for collision in collisions if collision.consequence is Consequence.FAILED]
    assert {collision.mechanism for collision in failed} == mechanisms
    assert sum(collision.count for collision in failed) == threads
    for account in found.accounts:
        obeyed = [collision.obeyed for collision in account.collisions if collision.obeyed is not None]
        assert len(set(obeyed)) == len(obeyed), "what one thread's call failed for, no other one's did"
    for collision in failed:
        assert collision.obeyed is None or collision.obeyed.t <= collision.at
        # The other thread did it, and the stacks of both are there to prove it.
        assert collision.culprit not in ("", collision.victim) and collision.window is not None
        assert collision.window.opened.stack and collision.met is not None and collision.met.stack
    # Their witness knew of no metrics.
    [metrics] = [each for each in found.hypotheses if each.name == "dynamo's metrics"]
    assert metrics.standing == "untested" and "an earlier one that did not look" in metrics.evidence[0]
    kept = {each.name for each in found.hypotheses if each.standing == "kept"}
    assert ("FX annotations" in kept) == (Mechanism.ANNOTATION in mechanisms)
    # Masks are made, and kernels unloaded, by calls: not by the compiles that the same threads come to later.
    assert ("torch.compile itself does it" in kept) == (Mechanism.FOREIGN_TRACE in mechanisms)


def test_each_annotation_was_left_behind_by_two_threads_that_made_masks(tmp_path: Path) -> None:
    found = explained(tmp_path, "explain-h200-torch-2.13-2.14", "2.14.1")
    for account in found.accounts:
        for collision in account.collisions:
            if collision.mechanism is Mechanism.ANNOTATION:
                assert collision.window is not None and collision.window.state is State.ANNOTATION
                assert "_dense_to_ordered" in {frame.function for frame in collision.window.opened.stack}
                assert collision.obeyed is not None and collision.obeyed.value.endswith("flex_attention_backward")
        said = " ".join(account.sentences)
        assert ("It had come to stay" in said) == any(
            collision.mechanism is Mechanism.ANNOTATION for collision in account.collisions
        )
