"""A world small enough for tests: pretended torch and transformers wheels, and a reproducer that reads its fate there.

The pretended ``torch`` says in ``FATE`` what happens to threads: the chance that a threaded trial fails, whether the
import hangs, and so on. The reproducer is a user's own command that speaks the protocol by hand, so that tests also
show what such a command has to do.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.index import Index
from tests.support.wheels import Wheels

SCRIPT = """\
import json, os, random, sys, threading, time

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
events = open(os.environ["BISECT_ENV_EVENTS"], "a", buffering=1)


def say(event, **values):
    events.write(json.dumps({"event": event, "t": time.time(), **values}) + "\\n")


say("start", pid=os.getpid())
try:
    import torch
    import transformers
except Exception as error:
    say("import_failed", type=type(error).__name__, message=str(error), traceback="")
    sys.exit(1)
say("ready", versions={"torch": torch.__version__, "transformers": transformers.__version__}, devices=[])
fate = torch.FATE
draw = random.Random(f"{condition['seed']} {torch.__version__} {transformers.__version__}").random()
threaded = condition["side"] == "threads"
if "HOLD" in os.environ:
    time.sleep(float(os.environ["HOLD"]))
if threaded and draw < fate.get("hang", 0):
    time.sleep(600)
if (threaded and draw < fate.get("race", 0)) or fate.get("broken"):
    say("failure", thread="w1", type="RuntimeError", message="tracing flag was set", module="torch.fx", where="trace:1",
        traceback="RuntimeError: tracing flag was set")
    sys.exit(1)
for step in range(3):
    say("step", thread="w0", tokens=fate.get("tokens", 1000), seconds=0.01, warm=True)
    time.sleep(0.01)
dense = transformers.DENSE if threaded else 0
say("path", thread="w0", calls=100, signs={"math_attention": dense, "library_choice": dense})
say("done")
"""


def fill(index: Index, wheels: Wheels, *, torches: dict[str, dict[str, object]], transformers: dict[str, int]) -> None:
    """Put a ``torch`` with each version's fate, and a ``transformers`` with each version's dense calls, on an index."""
    for version, fate in torches.items():
        cuda = version.partition("+cu")[2]
        variant = f"{cuda[:-1]}.{cuda[-1]}" if cuda else None
        files = {
            "torch/__init__.py": f"from . import version\n__version__ = {version!r}\nFATE = {fate!r}\n"
            + ("import time\ntime.sleep(600)\n" if fate.get("import_hangs") else "")
            + ("raise ImportError('libnothing.so: cannot open shared object')\n" if fate.get("import_fails") else ""),
            "torch/version.py": f"cuda = {variant!r}\n",
        }
        index.add(wheels.wheel("torch", version, files=files))
    for version, dense in transformers.items():
        files = {"transformers/__init__.py": f"__version__ = {version!r}\nDENSE = {dense}\n"}
        index.add(wheels.wheel("transformers", version, requires=["torch"], files=files))


def matrix(folder: Path, index: Index, body: str) -> Path:
    """A matrix file over the index, with the reproducer beside it."""
    (folder / "race.py").write_text(SCRIPT)
    path = folder / "matrix.yaml"
    path.write_text(
        f"name: tiny\nindex: {{urls: ['{index.url}']}}\n"
        "reproducer: {command: [python, race.py], files: [race.py]}\n" + body
    )
    return path
