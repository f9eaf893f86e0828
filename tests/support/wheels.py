"""Tiny synthetic distributions: valid wheels and source distributions of any name, version and requirements.

The bytes depend on the arguments alone, so that a test may compare hashes and locks between runs.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)

BACKEND = '''\
"""Build backend of a synthetic source distribution: packs the wheel that lies inside it, after its imports worked."""

import pathlib

{imports}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    (wheel,) = pathlib.Path("prebuilt").glob("*.whl")
    (pathlib.Path(wheel_directory) / wheel.name).write_bytes(wheel.read_bytes())
    return wheel.name
'''


def normalised(name: str) -> str:
    """The name as index URLs have it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def escaped(name: str) -> str:
    """The name as file names have it."""
    return normalised(name).replace("-", "_")


def metadata(
    name: str,
    version: str,
    requires: Iterable[str] = (),
    requires_python: str | None = None,
    extras: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """The METADATA (or PKG-INFO) of a distribution."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    for extra, requirements in (extras or {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {requirement} ; extra == '{extra}'" for requirement in requirements]
    return "\n".join(lines) + "\n"


def _contents(files: Mapping[str, str | bytes] | None, name: str, version: str) -> dict[str, bytes]:
    if files is None:
        files = {f"{escaped(name)}/__init__.py": f"__version__ = {version!r}\n"}
    return {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: Iterable[str] = (),
    files: Mapping[str, str | bytes] | None = None,
    tag: str = "py3-none-any",
    requires_python: str | None = None,
    extras: Mapping[str, Iterable[str]] | None = None,
    scripts: Mapping[str, str] | None = None,
) -> Path:
    """Writes a wheel and returns its path.

    ``files`` maps paths in site-packages to their text; by default the package has ``__init__.py`` with
    ``__version__``. ``scripts`` maps console scripts to ``module:function``.
    """
    contents = _contents(files, name, version)
    info = f"{escaped(name)}-{version}.dist-info"
    contents[f"{info}/METADATA"] = metadata(name, version, requires, requires_python, extras).encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    if scripts:
        lines = [f"{script} = {target}" for script, target in scripts.items()]
        contents[f"{info}/entry_points.txt"] = ("[console_scripts]\n" + "\n".join(lines) + "\n").encode()
    record = []
    for path, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}")
    contents[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{escaped(name)}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in contents.items():
            entry = zipfile.ZipInfo(member, EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def source_files(
    name: str,
    version: str,
    *,
    requires: Iterable[str] = (),
    files: Mapping[str, str | bytes] | None = None,
    build_requires: Iterable[str] = (),
    build_imports: Iterable[str] = (),
) -> dict[str, bytes]:
    """The files of a source tree that builds without anything but Python, unless it names ``build_imports``.

    ``build_requires`` is what it declares; ``build_imports`` are the modules that its backend really imports
    (flash-attn and its like declare less than they import).
    """
    with tempfile.TemporaryDirectory() as folder:
        built = wheel(Path(folder), name, version, requires=requires, files=files)
        data = built.read_bytes()
    declared = ", ".join(repr(requirement) for requirement in build_requires)
    return {
        "PKG-INFO": metadata(name, version, requires).encode(),
        "pyproject.toml": (
            f"[build-system]\nrequires = [{declared}]\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        ).encode(),
        "backend.py": BACKEND.format(imports="\n".join(f"import {module}" for module in build_imports)).encode(),
        f"prebuilt/{built.name}": data,
    }


def tree(folder: Path, name: str, version: str, **options: object) -> Path:
    """Writes a source tree into ``folder`` and returns it. Options are those of :func:`source_files`."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in source_files(name, version, **options).items():  # type: ignore[arg-type]
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def sdist(folder: Path, name: str, version: str, **options: object) -> Path:
    """Writes a source distribution and returns its path. Options are those of :func:`source_files`."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = source_files(name, version, **options)  # type: ignore[arg-type]
    stem = f"{escaped(name)}-{version}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in contents.items():
            entry = tarfile.TarInfo(f"{stem}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    path = folder / f"{stem}.tar.gz"
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


def corrupt(path: Path) -> Path:
    """Makes the file a broken archive of the same length: its index's hash is that of the broken file."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 3
    data[middle : middle + 64] = bytes(64)
    data[-22:] = bytes(22)
    path.write_bytes(bytes(data))
    return path


@dataclass(frozen=True)
class Wheels:
    """Builds distributions in one folder. The methods are this module's functions."""

    folder: Path

    def wheel(self, name: str, version: str, **options: object) -> Path:
        """See :func:`wheel`."""
        return wheel(self.folder, name, version, **options)  # type: ignore[arg-type]

    def sdist(self, name: str, version: str, **options: object) -> Path:
        """See :func:`sdist`."""
        return sdist(self.folder, name, version, **options)
