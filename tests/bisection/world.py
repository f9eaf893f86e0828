"""A world for bisections: tiny wheels on a loopback index, and a command that fails by chance, as its rules say.

The rules lie in a file beside the command. A rule holds when each thing it names is so: a distribution (``>=3``, as a
specifier), an environment variable, a key of the condition, or ``warm`` (whether the compile cache had an entry). The
first that holds decides the chance of failing and the message; ``through`` names a module whose ``fail`` raises it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bisect_env.bisection.batches import Place
from bisect_env.bisection.driver import bisect
from bisect_env.bisection.progress import Reporter
from bisect_env.bisection.records import Finding, Specification
from bisect_env.engine.settings import Settings
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Condition, IndexChoice, ReproducerChoice, Scalar
from bisect_env.snapshots.factors import Pins, difference, unknown_pins
from bisect_env.snapshots.records import Distribution, Snapshot
from bisect_env.store.database import Store
from tests.support.index import Index
from tests.support.wheels import Wheels

Rules = list[dict[str, object]]

SCRIPT = """\
import importlib, importlib.metadata, json, os, pathlib, random, re, sys

rules = json.load(open("rules.json"))
condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
entry = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "entry")
warm = entry.exists()
entry.write_text("compiled")
if condition["side"] == "warmup":
    sys.exit(0)
for name in rules["imports"]:
    importlib.import_module(name)


def numbers(version):
    return [int(part) for part in re.findall(r"[0-9]+", version)]


def holds(name, wanted):
    if name == "warm":
        return warm == wanted
    if name.isupper():
        return os.environ.get(name) == wanted
    if name in condition:
        return condition[name] == wanted
    try:
        found = numbers(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return wanted is None
    if wanted is None:
        return False
    sign, version = re.fullmatch(r"(>=|<|==)(.*)", wanted).groups()
    return {">=": found >= numbers(version), "<": found < numbers(version), "==": found == numbers(version)}[sign]


draw = random.Random(f"{condition['seed']} {json.dumps(rules)}").random()
for rule in rules["rules"]:
    if all(holds(name, wanted) for name, wanted in rule["when"].items()):
        if draw < rule["rate"]:
            if "through" in rule:
                importlib.import_module(rule["through"]).fail(rule["says"])
            print(f"RuntimeError: {rule['says']}", file=sys.stderr)
            raise RuntimeError(rule["says"])
        break
"""


@dataclass
class Listener(Reporter):
    """Remembers what it is told."""

    notes: list[str] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)
    last: tuple[tuple[str, float], ...] = ()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stage(self, stage: object, suspects: tuple[str, ...]) -> None:
        self.stages.append(str(stage))

    def batch_ended(self, observation: object) -> None:
        self.batches.append(str(observation))

    def posterior(self, stage: object, suspects: tuple[tuple[str, float], ...], confidence: float) -> None:
        self.last = suspects


@dataclass(frozen=True)
class Bisections:
    """Runs bisections in a folder of their own."""

    folder: Path
    index: Index
    wheels: Wheels
    uv_cache: Path

    @property
    def root(self) -> Path:
        return self.folder / ".bisect-env"

    def offer(self, name: str, *versions: str, requires: Iterable[str] = (), broken: Iterable[str] = ()) -> None:
        """Versions of a distribution; importing a ``broken`` one fails."""
        for version in versions:
            module = name.replace("-", "_")
            text = 'raise ImportError("libnothing.so: cannot open shared object file")\n' if version in broken else ""
            self.index.add(self.wheels.wheel(name, version, requires=requires, files={f"{module}/__init__.py": text}))

    def specification(
        self,
        good: Mapping[str, str],
        bad: Mapping[str, str],
        rules: Rules,
        *,
        imports: Iterable[str] = (),
        variables: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
        conditions: tuple[Mapping[str, Scalar], Mapping[str, Scalar]] = ({}, {}),
        pins: Pins = unknown_pins,
        **options: object,
    ) -> Specification:
        """Two sides that differ so, and what fails by which chance."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "trial.py").write_text(SCRIPT)
        (self.folder / "rules.json").write_text(json.dumps({"rules": rules, "imports": list(imports)}))
        sides = [
            Snapshot(
                origin,
                "pip freeze",
                tuple(Distribution(name, version) for name, version in sorted(versions.items())),
                variables=tuple(sorted(values.items())),
            )
            for origin, versions, values in (("good.txt", good, variables[0]), ("bad.txt", bad, variables[1]))
        ]
        plain = {"cache": "cold", "device": "cpu", "threads": 2}
        specification = Specification(
            good=sides[0],
            bad=sides[1],
            difference=difference(sides[0], sides[1], pins),
            condition_good=Condition.of({**plain, **conditions[0]}),
            condition_bad=Condition.of({**plain, **conditions[1]}),
            reproducer=ReproducerChoice(
                "command", ("python", "trial.py"), (self.folder / "trial.py", self.folder / "rules.json")
            ),
            index=IndexChoice(urls=(self.index.url,)),
            seed=7,
        )
        return replace(specification, **options)  # type: ignore[arg-type]

    def place(self, store: Store, listener: Reporter | None = None) -> Place:
        """Where they work."""
        return Place(Settings(self.root), store, Uv(self.uv_cache), listener or Listener(), threading.Event())

    def found(self, specification: Specification, listener: Reporter | None = None) -> Finding:
        """Its finding, run in this process."""
        self.root.mkdir(parents=True, exist_ok=True)
        with Store(self.root / "store.sqlite") as store:
            return bisect(specification, self.place(store, listener))
