"""Distributions that fail at a rate of their own, and a command that draws by it: small worlds for bisections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.racing import World

SCRIPT = """\
import importlib, json, os, random, sys, time

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
draw = random.Random(condition["seed"]).random()
modules = []
for name in sys.argv[1:]:
    try:
        modules.append(importlib.import_module(name))
    except ModuleNotFoundError:
        pass
time.sleep(float(os.environ.get("SLEEP", "0")))
rate = max([getattr(module, "RATE", 0.0) for module in modules], default=0.0)
if draw < max(rate, float(os.environ.get("OMP_RATE", "0"))):
    raise RuntimeError("tracing flag was set")
"""


@dataclass(frozen=True)
class Suspects:
    """A world with distributions to suspect."""

    world: World

    def offer(self, name: str, rates: Mapping[str, float], requires: Mapping[str, str] | None = None) -> None:
        """Put versions of a distribution on the index, each with the rate at which it fails."""
        for version, rate in rates.items():
            files = {f"{name}/__init__.py": f"__version__ = {version!r}\nRATE = {rate}\n"}
            needs = [requires[version]] if requires and version in requires else []
            self.world.index.add(self.world.wheels.wheel(name, version, requires=needs, files=files))

    def freeze(self, file: str, **pins: str) -> Path:
        """Write a ``pip freeze`` of these versions."""
        path = self.world.folder / file
        path.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        return path

    def command(self, *names: str) -> tuple[str, ...]:
        """The command that fails as the worst of these distributions does; its script lies in the project's folder."""
        (self.world.folder / "draw.py").write_text(SCRIPT)
        return ("python", "draw.py", *names)
