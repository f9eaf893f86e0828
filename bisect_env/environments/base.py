"""Environments that stand on an existing one: only what differs from it is installed, the rest is the base's.

A GPU host's own torch, as built for its driver, is the usual base; a folder of wheels the usual index.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments import distributions, foundation, requirements
from bisect_env.environments.building import build_settings
from bisect_env.environments.compiling import NETWORK, Compiler
from bisect_env.environments.foundation import Base
from bisect_env.environments.reasons import explain
from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.environments.scratch import scratch
from bisect_env.environments.uv import Finished, Uv
from bisect_env.environments.variants import cuda_of
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice, digest

GUARDED = re.compile(r"torch|triton|pytorch-triton(-.*)?|nvidia-.*")
"""Distributions that are built for each other and for the host: laid over the base's they make a mixture."""

TIMEOUT = 900.0
"""Seconds for one question to uv; a source distribution may have to be built to learn what it requires."""


def resolve_on_base(
    request: EnvironmentRequest,
    interpreter: Interpreter | None,
    uv: Uv,
    stop: threading.Event | None = None,
    before: str | None = None,
) -> Lock | Unavailable:
    """The lock of what must be laid over ``request.base`` for the request; its text and pins are the overlay's alone.

    ``interpreter`` is what the request's ``python`` stands for, None when it asks for none; ``before`` is for
    ``--exclude-newer``.

    Unavailable when the base's Python or CUDA variant is another one, or when torch, triton or an NVIDIA
    distribution would have to be laid over the base's and ``request.accept`` does not name it. Raises
    InfrastructureError as :func:`reasons.explain` does.
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
    # Torch is the base's; only where the cell may replace it do PyTorch's own indexes matter.
    backend = request.cuda if request.index.torch_backend is not None and "torch" in accepted else None
    index = replace(request.index, torch_backend=backend)
    compiler = Compiler(request, base.interpreter, uv, stop, before)
    with _view(base, uv) as (folder, python):
        overlay = _overlay(base, compiler, index, folder, python)
        if isinstance(overlay, Unavailable):
            return overlay
        laid_over = _laid_over(overlay, base)
        refused = _mixture({name: line for name, line in laid_over.items() if name not in accepted})
        if refused is not None:
            return refused
        lock = _lock(overlay, base, compiler, backend, folder)
    if isinstance(lock, Unavailable):
        return lock
    pins = dict(lock.pins)
    manifest = base.manifest
    return replace(
        lock,
        cuda=cuda_of((base.versions | pins).items()) if "torch" in pins else base.cuda,
        address=digest([lock.address, manifest], 24),
        base=str(base.interpreter.path),
        base_manifest=manifest,
        marks=tuple(laid_over.values()),
        notes=(*lock.notes, *_broken(base, pins)),
    )


def _overlay(
    base: Base, compiler: Compiler, index: IndexChoice, folder: Path, python: Path
) -> dict[str, str | None] | Unavailable:
    """Version by normalised name of what uv would install; None where it does not tell (git, URLs, local trees)."""
    request = compiler.request
    (folder / "requirements.in").write_text("".join(f"{line}\n" for line in request.requirements), encoding="utf-8")
    command: list[str | Path] = ["pip", "install", "--dry-run", "--quiet", "--output-format", "json"]
    command += ["--python", python, "--requirements", folder / "requirements.in"]
    settings = build_settings(request, tuple(base.versions.items()))
    if settings is not None:
        (folder / "uv.toml").write_text(settings, encoding="utf-8")
        command += ["--config-file", folder / "uv.toml"]
    if compiler.before is not None:
        command += ["--exclude-newer", compiler.before]
    undated: list[str] = []
    while True:
        exempt = [f"--exclude-newer-package={name}=false" for name in undated]
        asked = compiler.uv.run(
            [*command, *exempt], index=index, defaults=NETWORK, cwd=folder, timeout=TIMEOUT, stop=compiler.stop
        )
        if asked.ok:
            changes = json.loads(asked.stdout)["changes"]
            return {
                canonicalize_name(one["name"]): one.get("version") for one in changes if one["action"] == "installed"
            }
        more = [name for name in requirements.undated(asked.stderr) if name not in undated]
        if compiler.before is None or not more:
            return _refusal(asked, base, request)
        undated += more


def _lock(
    overlay: dict[str, str | None], base: Base, compiler: Compiler, backend: str | None, folder: Path
) -> Lock | Unavailable:
    """The overlay's lock. What the base gives is dropped from all requirements: no index need have it."""
    given = sorted(base.versions.keys() - overlay.keys())
    (folder / "given.txt").write_text("".join(f"{name} ; python_version < '0'\n" for name in given), encoding="utf-8")
    compiler = replace(compiler, options=("--overrides", str(folder / "given.txt")))
    return compiler.lock(_overlay_requirements(overlay, compiler.request.requirements), backend)


def _mixture(refused: dict[str, str]) -> Unavailable | None:
    if not refused:
        return None
    words = (
        f"{'; '.join(refused.values())}: a mixture of builds. Ask for the base's own versions, leave `base` out, or "
        f"have the cell marked by `accept: [{', '.join(sorted(refused))}]`"
    )
    return Unavailable("resolve", Reason.BASE, words)


@contextmanager
def _view(base: Base, uv: Uv) -> Iterator[tuple[Path, Path]]:
    """A scratch folder, and in it the Python of an empty environment in which uv sees the base's distributions.

    Their metadata is all that uv looks at. So it sees what Python sees, also where the base stands on
    another environment or on the system's packages; an externally managed base is not refused; and nothing,
    not even uv's lock file, is written into it.
    """
    with scratch() as folder:
        venv = folder / "view"
        made = uv.run(["venv", "--quiet", "--no-project", "--python", base.interpreter.path, venv], timeout=TIMEOUT)
        if not made.ok:
            raise InfrastructureError(f"no environment can be made from the base's Python: {made.stderr.strip()}")
        site = distributions.site_packages(venv)
        for found in base.distributions:
            _show(Path(found.metadata), site)
        yield folder, venv / "bin" / "python"


def _show(metadata: Path, site: Path) -> None:
    """Lets uv see a distribution in ``site``: a folder of links, as uv passes over a folder that is itself a link."""
    shown = site / metadata.name
    if not metadata.is_dir():
        shutil.copyfile(metadata, shown)  # an .egg-info of the oldest kind
        return
    shown.mkdir()
    for path in metadata.iterdir():
        if path.is_file():
            (shown / path.name).symlink_to(path)


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
    """uv's reason, after the guarded distributions that the request pins and the base has in another version."""
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
    if version is None or (requirement.marker is not None and not requirement.marker.evaluate(base.markers)):
        return None
    try:
        return None if requirement.specifier.contains(Version(version), prereleases=True) else name
    except InvalidVersion:
        return None


def _laid_over(overlay: dict[str, str | None], base: Base) -> dict[str, str]:
    """A sentence for each guarded distribution of the overlay that the base has, or whose torch it has."""
    if "torch" not in base.versions:
        return {}
    # Torch first: it is the cause, the others follow from it.
    guarded = sorted((name for name in overlay if GUARDED.fullmatch(name)), key=lambda name: (name != "torch", name))
    return {
        name: f"{name} {overlay[name] or 'of the given source'} over the base's {base.versions.get(name, 'none')}"
        for name in guarded
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


def _broken(base: Base, pins: dict[str, str]) -> tuple[str, ...]:
    """What the base's own distributions require and no longer find, one note each: they may not work in the cell."""
    notes = []
    for found in base.distributions:
        if found.name in pins:
            continue
        for line in found.requires:
            name = _name(line)
            if name in pins and not _satisfied(line, pins[name], base):
                notes.append(f"{found.name} {found.version} of the base requires {line}, the overlay has {pins[name]}")
    return tuple(notes)


def _satisfied(line: str, version: str, base: Base) -> bool:
    try:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate(base.markers):
            return True
        return requirement.specifier.contains(Version(version), prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return True  # what cannot be read is not claimed to be broken
