"""The tool itself as a wheel, for the target: built from its checkout, or packed again from where it is installed."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path

import bisect_env
from bisect_env.bundles import recorded
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice

NAME = "bisect-env"
EPOCH = (1980, 1, 1, 0, 0, 0)
TIMEOUT = 600.0


def checkout() -> Path | None:
    """The folder that this package's code is developed in, None when it runs from an installed wheel."""
    root = Path(bisect_env.__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() and (root / "noxfile.py").is_file() else None


def own_wheel(folder: Path, uv: Uv) -> Path:
    """Writes the wheel of the very code that runs into ``folder``.

    Raises:
        InfrastructureError: uv cannot build it, or its files are not as they were installed.
    """
    root = checkout()
    if root is None:
        return repacked(importlib.metadata.distribution(NAME), folder)
    built = uv.run(["build", "--wheel", "--quiet", "--out-dir", folder, root], index=IndexChoice(), timeout=TIMEOUT)
    wheels = list(folder.glob("*.whl"))
    if not built.ok or len(wheels) != 1:
        raise InfrastructureError(f"bisect-env's own wheel could not be built from {root}: {built.stderr.strip()}")
    return wheels[0]


def repacked(distribution: importlib.metadata.Distribution, folder: Path) -> Path:
    """A wheel of an installed pure-Python distribution, from the files that its RECORD lists; scripts are left out,
    which ``entry_points.txt`` makes anew.

    Raises InfrastructureError when a file is missing.
    """
    name = f"{distribution.metadata['Name'].replace('-', '_')}-{distribution.version}"
    info, path = f"{name}.dist-info", folder / f"{name}-py3-none-any.whl"
    skipped = {f"{info}/{file}" for file in recorded.WRITTEN_BY_INSTALLERS}
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(distribution.files or (), key=str):
            if file.parts[0] == ".." or file.suffix == ".pyc" or str(file) in skipped:
                continue
            try:
                data = Path(str(file.locate())).read_bytes()
            except OSError as error:
                raise InfrastructureError(f"bisect-env is not whole: {error}\n  Install it again.") from error
            entry = zipfile.ZipInfo(str(file), EPOCH)
            entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
            rows.append(f"{file},{'' if file.hash is None else f'{file.hash.mode}={file.hash.value}'},{len(data)}\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", EPOCH), "".join([*rows, f"{info}/RECORD,,\n"]))
    return path


def request(wheel: Path) -> EnvironmentRequest:
    """What the target installs: this wheel with nox, from the user's package index and the wheel's folder."""
    lines = (f"{NAME}[nox]=={bisect_env.__version__}",)
    return EnvironmentRequest(lines, index=IndexChoice(find_links=(str(wheel.parent),)))
