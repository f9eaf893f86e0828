"""Environments that stand on an existing one: only what differs from it is installed, the rest is the base's.

A GPU host's own torch, as built for its driver, is the usual base; a folder of wheels the usual index.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments import distributions, foundation
from bisect_env.environments.distributions import Pin
from bisect_env.environments.foundation import Base
from bisect_env.environments.reasons import explain
from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.environments.uv import Finished, Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice, digest

GUARDED = re.compile(r"torch|triton|pytorch-triton(-.*)?|nvidia-.*")
"""Distributions that are built for each other and for the host: laid over the base's they make a mixture."""

TIMEOUT = 600.0
"""Seconds for one question to uv; a source distribution may have to be built to learn what it requires."""


@dataclass(frozen=True)
class _Question:
    """What all of uv's calls for one request have in common."""

    uv: Uv
    index: IndexChoice
    folder: Path
    arguments: tuple[str, ...]
    stop: threading.Event | None

    def ask(self, command: Sequence[str | Path]) -> Finished:
        return self.uv.run(
            [*command, *self.arguments], index=self.index, cwd=self.folder, timeout=TIMEOUT, stop=self.stop
        )


def resolve_on_base(
    request: EnvironmentRequest,
    interpreter: Interpreter | None,
    uv: Uv,
    stop: threading.Event | None = None,
    arguments: Sequence[str] = (),
) -> Lock | Unavailable:
    """The lock of what must be laid over ``request.base`` for the request; its text and pins are the overlay's alone.

    ``interpreter`` is what the request's ``python`` stands for, None when it asks for none. ``arguments`` are
    further ones for uv's resolver, such as ``--exclude-newer``.

    Unavailable when the base's Python or CUDA variant is another one, or when torch, triton or an NVIDIA
    distribution would have to be laid over the base's and ``request.accept`` does not name it.
    """
    if request.base is None:
        raise ValueError("the request names no base")
    base = foundation.inspect(request.base)
    if isinstance(base, Unavailable):
        return base
    accepted = frozenset(canonicalize_name(name) for name in request.accept)
    refused = _other_python(base, interpreter) or _other_variant(base, request, accepted)
    if refused is not None:
        return refused
    variant = request.cuda if "torch" in accepted else None
    index = replace(request.index, torch_backend=variant if request.index.torch_backend is not None else None)
    with _view(base, uv) as (folder, python):
        question = _Question(uv, index, folder, tuple(arguments), stop)
        return _resolve(request, base, accepted, question, python)


def _resolve(
    request: EnvironmentRequest, base: Base, accepted: frozenset[str], question: _Question, python: Path
) -> Lock | Unavailable:
    wanted = question.folder / "requirements.in"
    wanted.write_text("".join(f"{line}\n" for line in request.requirements), encoding="utf-8")
    command = ["pip", "install", "--dry-run", "--quiet", "--output-format", "json", "--python", python]
    asked = question.ask([*command, "--requirements", wanted])
    if not asked.ok:
        return _refusal(asked, base, request)
    overlay = _installed(asked.stdout)
    laid_over = _laid_over(overlay, base)
    refused = [line for name, line in laid_over.items() if name not in accepted]
    if refused:
        return Unavailable(
            "resolve",
            Reason.BASE,
            f"{'; '.join(refused)}: a mixture of builds. Ask for the base's own versions, or name them under "
            f"`accept` to have the cell marked, or leave `base` out",
        )
    lines = _overlay_requirements(overlay, request.requirements)
    text = ""
    if lines:
        asked_for = question.folder / "overlay.in"
        asked_for.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command = ["pip", "compile", "--quiet", "--no-deps", "--generate-hashes", "--no-header", "--no-annotate"]
        compiled = question.ask([*command, "--python", python, asked_for])
        if not compiled.ok:
            return _refusal(compiled, base, request)
        text = compiled.stdout
    manifest = base.manifest
    pins = locked(text)
    return Lock(
        text=text,
        interpreter=base.interpreter,
        pins=pins,
        cuda=base.cuda,
        address=digest([text, *_identity(base), manifest], 24),
        base=str(base.interpreter.path),
        base_manifest=manifest,
        marks=tuple(laid_over.values()),
        notes=_broken(base, dict(pins)),
    )


@contextmanager
def _view(base: Base, uv: Uv) -> Iterator[tuple[Path, Path]]:
    """A scratch folder, and in it the Python of an empty environment in which uv sees the base's distributions.

    Links to their metadata are all that uv looks at. So it sees what Python sees, also where the base stands on
    another environment or on the system's packages; an externally managed base is not refused; and nothing,
    not even uv's lock file, is written into it.
    """
    with tempfile.TemporaryDirectory(prefix="bisect-env-base-") as name:
        venv = Path(name) / "view"
        made = uv.run(["venv", "--quiet", "--no-project", "--python", base.interpreter.path, venv], timeout=TIMEOUT)
        if not made.ok:
            raise InfrastructureError(f"no environment can be made from the base's Python: {made.stderr.strip()}")
        site = distributions.site_packages(venv)
        for found in base.distributions:
            target = Path(found.metadata)
            (site / target.name).symlink_to(target)
        yield Path(name), venv / "bin" / "python"


def _other_python(base: Base, interpreter: Interpreter | None) -> Unavailable | None:
    if interpreter is None or interpreter.version == base.interpreter.version:
        return None
    found = f"the base {base.interpreter.path} is Python {base.interpreter.version}"
    return Unavailable("resolve", Reason.BASE, f"{found}, the cell asks for {interpreter.version}")


def _other_variant(base: Base, request: EnvironmentRequest, accepted: frozenset[str]) -> Unavailable | None:
    if request.cuda is None or base.cuda in (None, request.cuda) or "torch" in accepted:
        return None
    found = f"the base's torch {base.versions.get('torch', '')} is a {base.cuda} build"
    return Unavailable("resolve", Reason.BASE, f"{found}, the cell asks for {request.cuda}")


def _refusal(asked: Finished, base: Base, request: EnvironmentRequest) -> Unavailable:
    """uv's reason; where the request pins a guarded distribution that the base has in another version, that comes first."""
    found = explain(asked)
    unmet = [line for line in request.requirements if (pin := _unmet(line, base)) and GUARDED.fullmatch(pin)]
    if not unmet:
        return found
    names = [f"{line} is asked for, the base has {base.versions[_name(line)]}" for line in unmet]
    return Unavailable("resolve", Reason.BASE, "; ".join(names) + "\n" + found.message)


def _unmet(line: str, base: Base) -> str | None:
    """Normalised name of a requirement that the base's version does not satisfy; None when it does or is absent."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return None
    name = canonicalize_name(requirement.name)
    version = base.versions.get(name)
    if version is None or (requirement.marker is not None and not requirement.marker.evaluate()):
        return None
    try:
        return None if requirement.specifier.contains(Version(version), prereleases=True) else name
    except InvalidVersion:
        return None


def _installed(answer: str) -> dict[str, str | None]:
    """Version by normalised name of what uv would install; None where it does not tell (git, URLs, local trees)."""
    changes = json.loads(answer)["changes"]
    return {canonicalize_name(one["name"]): one.get("version") for one in changes if one["action"] == "installed"}


def _laid_over(overlay: dict[str, str | None], base: Base) -> dict[str, str]:
    """A sentence for each guarded distribution of the overlay that the base has, or whose torch it has."""
    if "torch" not in base.versions:
        return {}
    return {
        name: f"{name} {version or 'of the given source'} over the base's {base.versions.get(name, 'none')}"
        for name, version in overlay.items()
        if GUARDED.fullmatch(name)
    }


def _overlay_requirements(overlay: dict[str, str | None], requirements: Sequence[str]) -> list[str]:
    """Exact pins, but the user's own line where it says where the distribution comes from."""
    sources = {_name(line): line for line in requirements if _has_source(line)}
    return [sources.get(name, f"{name}=={version}") for name, version in sorted(overlay.items())]


def _has_source(line: str) -> bool:
    try:
        return Requirement(line).url is not None
    except InvalidRequirement:
        return True  # a path, or a URL without a name


def _name(line: str) -> str:
    return canonicalize_name(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0])


def _identity(base: Base) -> list[str]:
    python = base.interpreter
    return [str(python.path), python.version, python.implementation, python.platform]


def _broken(base: Base, pins: dict[str, str]) -> tuple[str, ...]:
    """What the base's own distributions require and no longer find, one note each: they may not work in the cell."""
    notes = []
    for found in base.distributions:
        if found.name in pins:
            continue
        for line in found.requires:
            name = _name(line)
            if name in pins and not _satisfied(line, pins[name]):
                notes.append(f"{found.name} {found.version} of the base requires {line}, the overlay has {pins[name]}")
    return tuple(notes)


def _satisfied(line: str, version: str) -> bool:
    try:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            return True
        return requirement.specifier.contains(Version(version), prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return True  # what cannot be read is not claimed to be broken
