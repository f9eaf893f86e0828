"""From a request to a lock. What is asked of uv, and in which order, so that a variant is honoured or refused."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bisect_env.environments import base, dating, interpreters, requirements, variants
from bisect_env.environments.compiling import Compiler
from bisect_env.environments.index import PYTORCH, default_index
from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest

UNANSWERED = (Reason.INDEX_UNREACHABLE, Reason.CREDENTIALS)
"""PyTorch's index gave no answer: the package index's build may serve in its place."""


def resolve(
    request: EnvironmentRequest, uv: Uv, stop: threading.Event | None = None, elsewhere: Interpreter | None = None
) -> Lock | Unavailable:
    """The lock of a request, or why there is none.

    ``elsewhere`` is a Python of another host that the lock is for, its ``platform`` as uv's ``--python-platform``;
    such a lock has wheels of an index or a folder only, and the request no base.

    Raises BadInput for a requirement that is not valid, InfrastructureError for a full disk and when uv was killed.
    """
    parsed = requirements.parse(request.requirements)
    interpreter = interpreters.find(request.python) if elsewhere is None else _there(request, parsed, elsewhere)
    if isinstance(interpreter, Unavailable):
        return interpreter
    unreachable = _unreachable(request, uv)
    if unreachable is not None:
        return unreachable
    dated = dating.cutoff(request.as_of, parsed, request.index, uv.simple)
    if isinstance(dated, Unavailable):
        return dated
    if request.base is not None:
        asked = interpreter if request.python is not None else None
        result = base.resolve_on_base(request, asked, uv, stop, dated.before)
    else:
        compiler = Compiler(request, interpreter, uv, stop, dated.before, elsewhere=elsewhere is not None)
        result = _Variants(request, parsed, compiler).resolve()
    if isinstance(result, Unavailable):
        return result
    return replace(result, notes=(*dated.notes, *result.notes))


def _there(
    request: EnvironmentRequest, parsed: tuple[Requirement, ...], elsewhere: Interpreter
) -> Interpreter | Unavailable:
    """The other host's Python, where it is the one that the cell asks for and can install all of it."""
    if request.base is not None:
        raise ValueError("an environment on a base is resolved where the base is")
    by_url = [f"{requirement.name} ({requirement.url})" for requirement in parsed if requirement.url is not None]
    if by_url:
        words = (
            f"{', '.join(by_url)}: a source that another host has not, and no wheel of an index. Build a wheel of it, "
            "put that into a folder, name the folder under index: find-links, and ask for the version"
        )
        return Unavailable("resolve", Reason.BUILD, words)
    if request.python is not None and not _same_python(request.python, elsewhere.version):
        words = f"the cell asks for Python {request.python}, and this is resolved for Python {elsewhere.version}"
        return Unavailable("resolve", Reason.INTERPRETER, words)
    return elsewhere


def _same_python(asked: str, version: str) -> bool:
    """Whether a request for a Python agrees with a version as far as both go; a path never does."""
    match = interpreters.REQUEST.fullmatch(asked.strip())
    return match is not None and all(
        one == other for one, other in zip(match[1].split("."), version.split("."), strict=False)
    )


def _unreachable(request: EnvironmentRequest, uv: Uv) -> Unavailable | None:
    """An index that does not answer fails the whole resolution, after uv's own patience of minutes."""
    if request.index.offline:
        return None
    troubles = (uv.simple.reach(url) for url in request.index.urls or (default_index(),))
    return next((trouble for trouble in troubles if trouble is not None), None)


class _Variants:
    """The rules for CUDA variants, over a compiler that resolves lines against an index."""

    def __init__(self, request: EnvironmentRequest, parsed: tuple[Requirement, ...], compiler: Compiler) -> None:
        self.request, self.parsed, self.compiler = request, parsed, compiler
        self.simple = compiler.uv.simple
        self.pin = variants.torch_pin(parsed)
        self.plain = [str(requirement) for requirement in parsed]

    def resolve(self) -> Lock | Unavailable:
        wanted = self._wanted()
        if isinstance(wanted, Unavailable):
            return wanted
        own = self._own()
        if isinstance(own, Unavailable):
            return own
        if wanted is None:
            return self._unambiguous(self.compiler.lock(self.plain), own)
        lines = variants.labelled(self.parsed, wanted, own)
        backend = self.request.index.torch_backend
        if backend is None or (self.pin is not None and f"{self.pin}+{wanted}" in own.get("torch", ())):
            return self._of_variant(self.compiler.lock(lines), wanted)
        return self._from_pytorch(wanted)

    def _wanted(self) -> str | Unavailable | None:
        """The one variant that the cell, the index choice and torch's pin ask for."""
        backend = self.request.index.torch_backend
        label = variants.label_of(self.pin) if self.pin is not None else None
        asked = {
            "the cell's cuda": self.request.cuda,
            "index: torch-backend": None if backend == "auto" else backend,
            f"torch=={self.pin}": label if label is not None and variants.LABEL.fullmatch(label) else None,
        }
        given = {source: variant for source, variant in asked.items() if variant is not None}
        if len(set(given.values())) > 1:
            words = " and ".join(f"{source} is {variant}" for source, variant in given.items())
            return Unavailable("resolve", Reason.VARIANT, f"{words}: ask for one variant")
        return next(iter(given.values()), None)

    def _own(self) -> Mapping[str, tuple[str, ...]] | Unavailable:
        """Versions of torch and its family on the user's own indexes and in the folders; PyPI has no labels."""
        index = self.request.index
        offered: dict[str, tuple[str, ...]] = {}
        if index.urls or index.find_links:
            for requirement in self.parsed:
                name = canonicalize_name(requirement.name)
                if name in variants.FAMILY and requirement.url is None:
                    files = self.simple.files(name, index)
                    if isinstance(files, Unavailable):
                        if files.reason is Reason.OFFLINE:
                            continue  # uv's cache may still have it
                        return files
                    offered[name] = tuple(file.version for file in files)
        return offered

    def _from_pytorch(self, wanted: str) -> Lock | Unavailable:
        """PyTorch's index of the variant where it answers, else the package index's build if it is of that variant."""
        lines = self.plain
        offline = self.request.index.offline
        if not offline:
            # The host first, which is asked once a run: every variant would wait for it anew.
            page = self.simple.reach(PYTORCH) or self.simple.page(f"{PYTORCH}/{wanted}", "torch")
            if isinstance(page, Unavailable):
                return self._from_package_index(wanted, page)
            # Said with its label, so that no folder of wheels beside it can serve another variant.
            lines = variants.labelled(self.parsed, wanted, {"torch": [file.version for file in page]})
        served = self.compiler.lock(lines, wanted)
        if isinstance(served, Unavailable) and offline:
            words = f"offline, and uv's cache does not hold what {PYTORCH}/{wanted} has"
            return self._from_package_index(wanted, replace(served, reason=Reason.OFFLINE, message=words))
        if isinstance(served, Unavailable) and served.reason in UNANSWERED:
            return self._from_package_index(wanted, served)
        return self._of_variant(served, wanted)

    def _from_package_index(self, wanted: str, trouble: Unavailable) -> Lock | Unavailable:
        lock = self.compiler.lock(self.plain)
        if isinstance(lock, Unavailable):
            return lock
        version = dict(lock.pins).get("torch", "")
        if lock.cuda == wanted:
            note = f"{trouble.message}: the package index served torch {version}, which is {wanted}"
        elif self.request.index.torch_fallback and self.request.cuda is None:
            note = f"{trouble.message}: the package index's torch {version} ({lock.cuda}) was taken"
        else:
            words = f"torch {version} for {wanted}: {trouble.message}, and the package index's build is {lock.cuda}"
            return Unavailable("resolve", trouble.reason, words)
        return replace(lock, notes=(*lock.notes, note))

    def _of_variant(self, lock: Lock | Unavailable, wanted: str) -> Lock | Unavailable:
        if isinstance(lock, Unavailable) or lock.cuda == wanted:
            return lock
        if lock.cuda is None:
            return Unavailable("resolve", Reason.VARIANT, f"{wanted} was asked for, and nothing here requires torch")
        version = dict(lock.pins)["torch"]
        words = f"the index's torch {version} is {lock.cuda}, not {wanted}"
        if self.request.index.torch_backend is None:
            words += "; PyTorch's own indexes have each variant (index: torch-backend: auto)"
        return Unavailable("resolve", Reason.VARIANT, words)

    def _unambiguous(self, lock: Lock | Unavailable, own: Mapping[str, tuple[str, ...]]) -> Lock | Unavailable:
        """No variant was asked for: where an index has several, uv would silently take the highest."""
        if isinstance(lock, Unavailable):
            return lock
        version = dict(lock.pins).get("torch")
        if version is None or variants.label_of(version) is None:
            return lock
        builds = variants.builds(own.get("torch", ()), version)
        if len(builds) < 2:
            return lock
        words = f"the index has torch {' and '.join(builds)}: ask for one of them (axes: cuda, or the label in the pin)"
        return Unavailable("resolve", Reason.VARIANT, words)
