"""What a Python would import, asked of that Python: its distributions with their origins, torch's variant, its folder.

Runs on the captured host (:mod:`capture`): standard library alone, Python 3.8 or later, nothing written. No package is
imported.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any, Dict  # noqa: UP035 - Python 3.8 evaluates the alias below

from bisect_env.matrix.urls import has_credentials, stripped, without_credentials

Document = Dict[str, Any]  # noqa: UP006

_OWNED = re.compile(r"(?:.*/)?([^/]+?)-([^/-]+?)(?:-py[\d.]+)?\.(?:dist-info|egg-info)(?:/.*)?")
_TOLD = re.compile(r"^(__version__|cuda|hip)\b[^=\n]*=\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|None)", re.MULTILINE)


def interpreter() -> Document:
    """All that this file knows, by the names in the document of a capture."""
    found, unread = _installed()
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "venv": sys.prefix if sys.prefix != sys.base_prefix or Path(sys.prefix, "conda-meta").is_dir() else None,
        "platform": sysconfig.get_platform(),
        "distributions": found + _of_conda(found),
        "unread": unread,
        "torch": _torch(),
    }


def _folders() -> list[str]:
    """Where this interpreter finds packages, without the folder that the program happened to be started in."""
    return sys.path[1:] if sys.path[:1] == [""] else list(sys.path)


def _installed() -> tuple[list[Document], list[Document]]:
    """What can be imported, and what could not be read. Of a distribution in several folders the first counts."""
    found: dict[str, Document] = {}
    unread = []
    for distribution in importlib.metadata.distributions(path=_folders()):
        try:
            metadata = distribution.metadata
            name, version = metadata["Name"], metadata["Version"]
            if not name or not version:
                raise ValueError("its metadata has no name or no version")
            entry: Document = {
                "name": _normalised(name),
                "version": version,
                "source": "",
                "editable": False,
                "manager": "pip",
            }
            entry.update(_source(distribution.read_text("direct_url.json")))
            if (distribution.read_text("INSTALLER") or "").strip() == "conda":
                entry["manager"] = "conda"
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises, it is listed
            place = str(getattr(distribution, "_path", "") or "a distribution")
            unread.append({"path": place, "why": without_credentials(f"{type(error).__name__}: {error}")})
            continue
        found.setdefault(entry["name"], entry)
    return [found[name] for name in sorted(found)], unread


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _source(text: str | None) -> Document:
    """Of direct_url.json (PEP 610): where it was installed from, when that was no index."""
    if not text:
        return {}
    direct = json.loads(text)
    url = str(direct["url"])
    url = stripped(url) if has_credentials(url) else url
    if "vcs_info" in direct:
        url = f"{direct['vcs_info']['vcs']}+{url}@{direct['vcs_info']['commit_id']}"
    # Of an archive its hash: another one may stand at the URL meanwhile.
    hashes = direct.get("archive_info", {}).get("hashes") or {}
    told = [f"{name}={hashes[name]}" for name in sorted(hashes) if name == "sha256"]
    told += [f"subdirectory={direct['subdirectory']}"] if direct.get("subdirectory") else []
    if told:
        url = f"{url.partition('#')[0]}#{'&'.join(told)}"
    return {"source": url, "editable": bool(direct.get("dir_info", {}).get("editable"))}


def _of_conda(found: list[Document]) -> list[Document]:
    """What conda says it installed and Python does not see: no Python package, or one that pip has replaced since.

    What it installed and Python sees gets its build: of one version conda has several.
    """
    seen = {(entry["name"], entry["version"]): entry for entry in found}
    for path in sorted(Path(sys.prefix, "conda-meta").glob("*.json")):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            own = (_normalised(told["name"]), str(told["version"]))
            build, matches = str(told["build"]), (_OWNED.fullmatch(file) for file in told["files"] if "-info" in file)
            owned = {(_normalised(match[1]), match[2]) for match in matches if match} or {own}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
        for pin in sorted(owned):
            entry = seen.setdefault(pin, {"name": pin[0], "version": pin[1], "source": "", "editable": False})
            entry.update(manager="conda", build=build)
    here = {id(entry) for entry in found}
    return [entry for entry in seen.values() if id(entry) not in here]


def _torch() -> Document | None:
    """What torch was built for, as its version.py has it: importing it takes seconds, and may touch a GPU."""
    for folder in _folders():
        path = Path(folder, "torch", "version.py")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        told = {match[1]: match[2] or match[3] for match in _TOLD.finditer(text)}
        return {"version": told.get("__version__"), "cuda": told.get("cuda"), "hip": told.get("hip")}
    return None
