"""A difference as people and as programs read it."""

from __future__ import annotations

import json

from bisect_env.report import difference
from bisect_env.snapshots.factors import Change, Difference, Factor, Follower, Held, Kind
from bisect_env.snapshots.records import Snapshot

GOOD, BAD = Snapshot("good.txt", "pip freeze", ()), Snapshot("host:ssh gpu3", "bisect-env snapshot", ())
FOUND = Difference(
    (
        Factor(
            "torch",
            Kind.DISTRIBUTION,
            "2.8.0 (cu128)",
            "2.11.0 (cu130)",
            (
                Change("torch", "2.8.0", "2.11.0"),
                Change("triton", "3.4.0", "3.6.0"),
                *(Change(f"nvidia-{name}", None, "13.0") for name in ("cublas", "cudnn", "nccl")),
            ),
        ),
        Factor("OMP_NUM_THREADS", Kind.VARIABLE, None, "8", (Change("OMP_NUM_THREADS", None, "8"),)),
    ),
    (Held("driver", "570", "580", "why"), Held("GPUs", "H100", "H200", "why"), Held("x", None, "1", "other")),
    ("A note " + "of many words " * 12 + "https://example.org/a-path-with-hyphens",),
    (Follower(Change("httpx", None, "0.28"), ("hub", "transformers")),),
)

TEXT = """\
good: good.txt (pip freeze)
bad:  host:ssh gpu3 (bisect-env snapshot)
2 factors

factor           kind          good           bad             with
---------------  ------------  -------------  --------------  -----------------------------------------------
torch            distribution  2.8.0 (cu128)  2.11.0 (cu130)  triton, nvidia-cublas, nvidia-cudnn and 1 more
OMP_NUM_THREADS  variable      not set        8

Move together, since no environment can have them at different levels:
  torch: torch 2.8.0 -> 2.11.0, triton 3.4.0 -> 3.6.0, nvidia-cublas 13.0 (bad only), nvidia-cudnn 13.0 (bad only),
    nvidia-nccl 13.0 (bad only)

Come and go with what requires them:
  httpx 0.28 (bad only): with hub, transformers

Held: differs, cannot be changed here, and is not cleared:
  driver 570 -> 580, GPUs H100 -> H200: why
  x 1 (bad only): other

Notes:
"""


def squeezed(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if set(line) - set("- ")]


def test_everything_that_was_found_is_told() -> None:
    told = difference.text(GOOD, BAD, FOUND)
    assert squeezed(told)[: len(squeezed(TEXT))] == squeezed(TEXT)
    assert max(map(len, told.splitlines())) <= difference.WIDTH
    assert "https://example.org/a-path-with-hyphens" in told


def test_what_is_empty_is_left_out() -> None:
    told = difference.text(GOOD, GOOD, Difference(()))
    assert told == "good: good.txt (pip freeze)\nbad:  good.txt (pip freeze)\nno factor that can be changed here"


def test_the_structure_has_all_of_it() -> None:
    told = json.loads(json.dumps(difference.structure(GOOD, BAD, FOUND)))
    assert list(told) == ["schema", "good", "bad", "factors", "followers", "held", "notes"]
    assert told["factors"][0]["kind"] == "distribution"
    assert told["factors"][1]["good"] is None
    assert told["followers"] == [
        {
            "change": {"name": "httpx", "good": None, "bad": "0.28", "good_source": "", "bad_source": ""},
            "factors": ["hub", "transformers"],
        }
    ]
    assert told["held"][2] == {"name": "x", "good": None, "bad": "1", "why": "other", "available": ""}
