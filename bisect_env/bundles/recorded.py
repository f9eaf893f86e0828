"""What a RECORD says of a distribution's files, reduced to what installing a wheel does not change.

Standard library alone and no import of this package, so that this file can be run anywhere as it is.
"""

from __future__ import annotations

import csv
import hashlib

WRITTEN_BY_INSTALLERS = frozenset(
    {"INSTALLER", "REQUESTED", "direct_url.json", "RECORD", "uv_build.json", "uv_cache.json"}
)
"""Files of a ``.dist-info`` folder that an installer adds or changes."""


def rows(record: str) -> tuple[str, ...]:
    """Sorted lines ``path,hash`` of a RECORD's text, of the files that the wheel itself put into site-packages.

    Left out is what has no hash, byte code, what installers add, and what lies outside of site-packages: scripts are
    made at installation, and name the interpreter there. (A wheel that brings files for outside has a ``.data``
    folder; for those this says too little.)
    """
    found = set()
    for line in csv.reader(record.splitlines()):
        path, digest = (*line, "", "")[:2]
        folder, _, name = path.rpartition("/")
        added = folder.endswith(".dist-info") and name in WRITTEN_BY_INSTALLERS
        outside = path.startswith(("../", "/"))
        if digest and not added and not outside and not name.endswith(".pyc"):
            found.add(f"{path},{digest}")
    return tuple(sorted(found))


def digest(record: str) -> str:
    """SHA-256 (hexadecimal) of :func:`rows`, one a line: equal for a wheel and for what was installed from it."""
    return hashlib.sha256("\n".join(rows(record)).encode()).hexdigest()
