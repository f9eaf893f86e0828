"""From the words of a user to the places that modules are read from."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.version import Version

from bisect_env.environments.index import File
from bisect_env.environments.records import Interpreter
from bisect_env.environments.sizes import tags_of
from bisect_env.errors import BadInput
from bisect_env.inspection.installed import Installed, installed, running_standard_library
from bisect_env.inspection.listing import Listing
from bisect_env.inspection.records import Sources
from bisect_env.inspection.remote import Remote
from bisect_env.inspection.traffic import Traffic
from bisect_env.inspection.wanted import Wanted, best_wheel, near, of_version, parse, released, versions
from bisect_env.inspection.wheels import WheelSources, open_wheel
from bisect_env.matrix.cells import IndexChoice

AT_ONCE = 8
"""Places that are opened at a time."""
WORDS = (
    "an environment's folder, its interpreter, a wheel's file, NAME==VERSION, NAME==A..B (the newest patch of each "
    "minor version) or NAME==A...B (all)"
)

Opener = Callable[[], WheelSources | Installed]


def open_origins(
    words: Sequence[str],
    distribution: str,
    index: IndexChoice,
    root: Path,
    *,
    python: str | None = None,
    download: bool = False,
    traffic: Traffic | None = None,
) -> tuple[Sources, ...]:
    """The places that ``words`` name, in their order; a range gives several. Labels differ.

    Args:
        words: each one of :data:`WORDS`.
        distribution: the one that is looked at: an environment is called by its version. May be empty.
        index: where versions come from.
        root: the project's folder (``.bisect-env``): what is read of wheels on an index is kept there.
        python: the version (``3.12``) whose wheels are read where they differ; None: that of this process.
        download: fetch wheels of any size whole where a server serves no parts of files.
        traffic: is told what came over the network, with notes that a reader must see.

    Raises:
        BadInput: a word names nothing; a version that the index does not have is told with the nearest ones.
        InfrastructureError: what it names cannot be read now.
    """
    openers = _Openers(distribution, index, root, python, download, Traffic() if traffic is None else traffic)
    ready = [opener for word in words for opener in openers.of(word)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(opener) for opener in ready]
        try:
            places = [future.result() for future in futures]
        except BaseException:  # Ctrl-C among them
            openers.remote.stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    _tell_apart(places)
    return tuple(places)


class _Openers:
    """What opens each of the places that a word names; the index's pages are asked for on the way."""

    def __init__(
        self, distribution: str, index: IndexChoice, root: Path, python: str | None, download: bool, traffic: Traffic
    ) -> None:
        self._distribution, self._traffic = distribution, traffic
        self._listing = Listing(index, root, traffic)
        self._beneath = running_standard_library()
        self._python = python or platform.python_version()
        target = Interpreter(Path(sys.executable), self._python, "cpython", sysconfig.get_platform())
        try:
            self._order = {tag: place for place, tag in enumerate(tags_of(target))}
        except ValueError as error:
            raise BadInput("python", "", f"{self._python!r} is no version", "a version such as 3.12") from error
        self.remote = Remote(index, root, traffic, download=download)

    def of(self, word: str) -> list[Opener]:
        """In the order of the versions. Raises BadInput and InfrastructureError."""
        if word.endswith(".whl"):
            return [partial(open_wheel, Path(word).expanduser(), self._beneath)]
        wanted = parse(word)
        if wanted is not None:
            return self._versions(word, wanted)
        if "/" not in word and not Path(word).expanduser().exists():
            raise BadInput(word, "", "no file or folder, and no NAME==VERSION", _instead(word))
        return [partial(installed, word, self._distribution)]

    def _versions(self, word: str, wanted: Wanted) -> list[Opener]:
        files = self._listing.files(wanted.name, wanted.first if wanted.last is None else None)
        if not files:
            found = f"{self._listing.place} has no distribution {wanted.name}"
            raise BadInput(word, "", found, "another name or index; or an environment, or a wheel's file")
        return [self._version(word, wanted.name, Version(text), files) for text in versions(wanted, released(files))]

    def _version(self, word: str, name: str, version: Version, files: Sequence[File]) -> Opener:
        own = of_version(files, version)
        found = best_wheel(own, self._order)
        if found is None and own:
            size = f", {own[0].size / 1e6:.1f} MB" if own[0].size else ""
            said = f"{name} {version} is there as source only ({own[0].name}{size}), which is not read in parts"
            raise BadInput(word, "", said, "an environment in which it is installed, or a wheel built of it")
        if found is None:
            said = f"{self._listing.place} has no {name} {version}"
            raise BadInput(word, "", said, near(version, (each.version for each in files)))
        file, fits = found
        if not fits:
            self._traffic.note(f"{name} {version} has no wheel for Python {self._python} here; {file.name} is read.")
        if file.url.startswith("file:"):
            return partial(open_wheel, Path(unquote(urlsplit(file.url).path)), self._beneath)
        return partial(self.remote.open, file, f"{name} {file.version}", self._beneath)


def _instead(word: str) -> str:
    """What to write in the place of a bare name."""
    command = shutil.which(word)
    if command is not None:
        return f"the path of an interpreter, such as {command}; or {WORDS}"
    if os.sep in word or word.startswith("."):
        return WORDS
    name = re.split(r"[^\w.-]", word)[0]
    return f"{name or 'NAME'}==VERSION, when a distribution is meant; else {WORDS}"


def _tell_apart(places: Sequence[WheelSources | Installed]) -> None:
    """Give places with equal labels different ones: by where they are, then by number."""
    for each in _doubles(places):
        each.label = f"{each.label} ({each.place})"
    numbers: Counter[str] = Counter()
    for each in _doubles(places):
        numbers[each.label] += 1
        each.label = f"{each.label} #{numbers[each.label]}"


def _doubles(places: Sequence[WheelSources | Installed]) -> list[WheelSources | Installed]:
    counts = Counter(each.label for each in places)
    return [each for each in places if counts[each.label] > 1]
