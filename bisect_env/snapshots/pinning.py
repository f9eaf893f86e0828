"""What distributions require and whether this host can have them, asked of built environments and of the index."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

from bisect_env.environments import foundation, variants
from bisect_env.environments.index import PYTORCH, SimpleIndex
from bisect_env.environments.metadata import MetadataSource
from bisect_env.environments.records import Unavailable
from bisect_env.environments.side_by_side import side_by_side
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots import grouping, sources
from bisect_env.snapshots.changes import compare
from bisect_env.snapshots.factors import Difference, difference
from bisect_env.snapshots.records import Distribution, Snapshot, Target

AT_ONCE = 16
"""Questions to the index at a time: each is a small file."""

Installed = Mapping[tuple[str, str], Sequence[str]]
"""``Requires-Dist`` lines by normalised name and version."""


def installed(specs: Iterable[str]) -> Installed:
    """What the distributions of the built environments among these sources (:mod:`.sources`) require.

    Of an environment that cannot be asked, nothing: the index is then.
    """
    found: dict[tuple[str, str], Sequence[str]] = {}
    for python in filter(None, map(sources.environment_of, specs)):
        base = foundation.inspect(str(python))
        if not isinstance(base, Unavailable):
            found |= {(each.name, each.version): each.requires for each in base.distributions}
    return found


def differing(
    good: Snapshot,
    bad: Snapshot,
    index: IndexChoice,
    simple: SimpleIndex,
    known: Installed | None = None,
    host: Target | None = None,
) -> Difference:
    """The difference of two snapshots, with what distributions require as their environments (``known``) and the index
    say it, and with those held that cannot be had here.

    An index that does not answer leaves requirements unknown, and holds nothing.
    """
    asked = Asked(index, simple, known or {})
    names = {change.name for change in compare(good, bad).changes}
    changed = [each for side in (good, bad) for each in side.distributions if each.name in names]
    # What they say is kept: the core then asks one by one.
    side_by_side(asked.look, changed, AT_ONCE, threading.Event())
    return difference(good, bad, asked.requires, asked.missing, host)


class Asked:
    """What is known of distributions here: of built environments first, then of the index."""

    def __init__(self, index: IndexChoice, simple: SimpleIndex, known: Installed) -> None:
        self._index, self._simple, self._known = index, simple, known
        self._metadata = MetadataSource(simple, index)

    def look(self, distribution: Distribution) -> None:
        """Asks everything that will be asked of this distribution."""
        self.requires(distribution)
        self.missing(distribution)

    def requires(self, distribution: Distribution) -> Sequence[str] | None:
        """``Requires-Dist`` lines; None: not known. For :func:`factors.difference`."""
        if distribution.version is None:
            return None
        found = self._known.get((distribution.name, distribution.version))
        if found is not None:
            return found
        if "://" in distribution.source:
            return None  # What an index says of the same version may not be true of this build.
        metadata = self._metadata.of(distribution.name, distribution.version)
        return None if metadata is None else metadata.requires

    def missing(self, distribution: Distribution) -> str:
        """Why this host cannot have it; empty: it can, or that is not known. For :func:`factors.difference`."""
        source = distribution.source
        if source.startswith("file:"):
            path = Path(unquote(urlsplit(source).path))
            return "" if path.exists() else f"{path} is not on this host"
        if "://" in source:
            return ""  # Whether it can be fetched is known when it is.
        if distribution.version is None:
            return ""
        files = self._simple.files(distribution.name, self._index)
        if isinstance(files, Unavailable):
            return ""
        if any(_same(file.version, distribution.version) for file in files):
            return ""
        if self._index.torch_backend is not None and grouping.in_family(distribution.name):
            return ""  # PyTorch's own indexes may have it: uv asks them.
        if not files:
            return f"no index or folder that is used here has {distribution.name}"
        why = f"no index or folder that is used here has {distribution.name} {distribution.version}"
        label = variants.label_of(distribution.version)
        if label is None or not variants.LABEL.fullmatch(label):
            return why
        return f"{why}; PyTorch's own has its builds: {PYTORCH}/{label}"


def _same(offered: str, wanted: str) -> bool:
    """Whether an index's version can stand for a wanted one: metadata often leaves out the label of the build."""
    try:
        one, other = Version(offered), Version(wanted)
    except InvalidVersion:
        return offered == wanted
    return one == other or (other.local is None and one.public == other.public)
