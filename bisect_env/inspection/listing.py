"""What an index has of a distribution: asked once a day at most, and from what was kept where that is enough."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from bisect_env.environments.index import File, SimpleIndex, bare, default_index
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.errors import InfrastructureError
from bisect_env.inspection.kept import keep_page, load_page
from bisect_env.inspection.traffic import Traffic
from bisect_env.inspection.wanted import of_version
from bisect_env.matrix.cells import IndexChoice

FRESH = timedelta(days=1)
"""How long a list of releases is good for a range; a version that stands in a list is taken from one of any age."""
TIMEOUT = 20.0
"""Seconds for an index's page."""


class Listing:
    """Files of distributions on one index. Used by one thread.

    Args:
        index: which one, and whether it may be asked.
        root: the project's folder, for what is kept.
        traffic: is told of what comes, and of a list that is old.
    """

    def __init__(self, index: IndexChoice, root: Path, traffic: Traffic) -> None:
        self.index, self._root, self._traffic = index, root, traffic
        self._simple = SimpleIndex(TIMEOUT, traffic.heard)
        self._urls = (*(index.urls or (default_index(),)), *index.find_links)

    @property
    def place(self) -> str:
        """What the index is called in messages."""
        return " or ".join(bare(url) for url in (*self.index.find_links, *(self.index.urls or (default_index(),))))

    def files(self, name: str, version: Version | None) -> tuple[File, ...]:
        """What there is of a distribution; empty when the index does not know it.

        Args:
            name: of the distribution.
            version: the only one that matters; None: which ones there are is the question.

        Raises:
            InfrastructureError: the index does not answer, and nothing was kept.
        """
        name = canonicalize_name(name)
        kept = load_page(self._root, self._urls, name)
        if kept is not None:
            asked, files = kept
            if version is None and datetime.now(UTC) - asked < FRESH:
                return files
            if version is not None and any(file.wheel for file in of_version(files, version)):
                return files
        found = self._simple.files(name, self.index)
        if not isinstance(found, Unavailable):
            if found and all(file.url.startswith(("http:", "https:")) for file in found):
                keep_page(self._root, self._urls, name, found)
            return found
        if kept is None:
            raise InfrastructureError(f"the versions of {name} are not known: {found.message}{_advice(found)}")
        self._traffic.note(f"The versions of {name} are those of {asked:%Y-%m-%d %H:%M} UTC: {found.message}.")
        return files


def _advice(found: Unavailable) -> str:
    if found.reason is Reason.OFFLINE:
        return "\n  Once without --offline, and what is read is kept; or give a wheel's file, or an environment."
    if found.reason is Reason.CREDENTIALS:
        return "\n  They are taken from the index's URL, from UV_INDEX_NAME_USERNAME and _PASSWORD, or ~/.netrc."
    return ""
