"""What a host has: its Python, what is installed for it, and the wheels that were unbundled there.

Standard library alone, for any Python 3.8 or later: :func:`script` is a program for a host that has nothing yet.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from bisect_env.bundles import recorded

NEEDS = ("bisect_env.bundles.recorded", "bisect_env.bundles.inventory")


def inventory(bundle: str | None = None) -> dict[str, object]:
    """What this interpreter has, and what the unbundled folder ``bundle`` holds.

    Keys: ``python`` (``3.12.3``), ``platform`` (``linux-x86_64``), ``libc`` (``glibc 2.39``), ``uv`` (its version or
    None), ``installed`` (each ``name``, ``version``, ``location`` and ``record``, which is :func:`recorded.digest`),
    ``wheels`` (SHA-256, as locks have it, of each complete wheel).

    What the unbundled folder found to differ from its wheel is not listed as installed: the next bundle brings it.
    """
    differing = set() if bundle is None else _differing(bundle)
    return {
        "python": platform.python_version(),
        "platform": sysconfig.get_platform(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "uv": _uv(),
        "installed": [entry for entry in _installed() if (entry["name"], entry["version"]) not in differing],
        "wheels": [] if bundle is None else _wheels(bundle),
    }


def script() -> str:
    """This module as a program of its own: ``python3 - [--bundle DIR] < SCRIPT``."""
    sources = {"bisect_env": "", "bisect_env.bundles": ""}
    for name in NEEDS:
        sources[name] = Path(__file__).with_name(name.rpartition(".")[2] + ".py").read_text(encoding="utf-8")
    return f"""\
# What a host has, for `bisect-env bundle --have`:  ssh HOST python3 - < THIS > have.json
import sys
import types

SOURCES = {{
{"".join(f"    {name!r}: {text!r},{chr(10)}" for name, text in sources.items())}}}
for name, text in SOURCES.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""


def main() -> None:
    """The program: prints JSON."""
    parser = argparse.ArgumentParser(prog="inventory", description="What this host has, as JSON.")
    parser.add_argument("--bundle", metavar="DIR", help="folder of an earlier `bisect-env unbundle --into`")
    sys.stdout.write(json.dumps(inventory(parser.parse_args().bundle), indent=1) + "\n")


def _uv() -> str | None:
    found = shutil.which("uv")
    if found is None:
        return None
    try:
        said = subprocess.run([found, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"\d+(\.\d+)+", said.stdout.decode("utf-8", "replace"))
    return version.group() if version else None


def _installed() -> list[dict[str, str]]:
    """Of a distribution in several folders the one that this interpreter imports. Editable ones have no files."""
    found: dict[str, dict[str, str]] = {}
    for distribution in importlib.metadata.distributions():
        record, metadata = distribution.read_text("RECORD"), distribution.metadata
        name = re.sub(r"[-_.]+", "-", metadata["Name"] or "").lower()
        if name and record is not None:
            entry = {
                "name": name,
                "version": distribution.version,
                "location": str(Path(str(distribution.locate_file(""))).resolve()),
                "record": recorded.digest(record),
            }
            found.setdefault(name, entry)
    return [found[name] for name in sorted(found)]


def _wheels(bundle: str) -> list[str]:
    """As :meth:`destination.Destination.held` has it."""
    complete = []
    for held in sorted(Path(bundle, "held").glob("*")):
        try:
            entry = json.loads(held.read_text(encoding="utf-8"))
            if Path(bundle, "wheels", entry["filename"]).stat().st_size == entry["size"]:
                complete.append(held.name)
        except (OSError, ValueError, LookupError):
            continue
    return complete


def _differing(bundle: str) -> set[tuple[str, str]]:
    """Name and version of what :mod:`repack` could not make a wheel of."""
    found = set()
    for path in Path(bundle, "unfinished").glob("*.differs"):
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
            found.add((entry["name"], entry["version"]))
        except (OSError, ValueError, LookupError):
            continue
    return found
