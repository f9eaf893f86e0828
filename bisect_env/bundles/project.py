"""What of the project goes along: the noxfile, the matrices, the reproducers, and the bundled matrix with its files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from bisect_env.bundles.tool import checkout
from bisect_env.matrix import shipped
from bisect_env.matrix.cells import Matrix

LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*")


def place_of(matrix: Matrix) -> Path:
    """Where the matrix file lies in the project's folder: as in the checkout, else among the matrices."""
    root = checkout()
    if root is not None and matrix.path.resolve().is_relative_to(root):
        return matrix.path.resolve().relative_to(root)
    return Path("matrices", matrix.path.name)


def write(matrix: Matrix, folder: Path) -> tuple[str, ...]:
    """Writes the project into ``folder``, over what is there; sentences on what could not go along.

    Reproducers and matrices are there to be read: the installed tool brings its own. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = checkout()
    if root is not None:
        shutil.copyfile(root / "noxfile.py", folder / "noxfile.py")
    for source, name in ((shipped.matrices_folder(), "matrices"), (shipped.reproducers_folder(), "reproducers")):
        shutil.copytree(source, folder / name, ignore=LEFT_OUT, dirs_exist_ok=True)
    file = folder / place_of(matrix)
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(matrix.path, file)
    return tuple(_beside(matrix, file.parent))


def _beside(matrix: Matrix, folder: Path) -> Iterator[str]:
    """What the matrix file names by relative paths, at the same places relative to its copy."""
    home = matrix.path.resolve().parent
    for source in matrix.reproducer.files:
        if not source.resolve().is_relative_to(home):
            yield f"{source} lies outside of {home} and stays here: copy it to the target by hand"
            continue
        there = folder / source.resolve().relative_to(home)
        there.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, there, ignore=LEFT_OUT, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, there)
    for link in {link for cell in matrix.cells for link in cell.request.index.find_links}:
        # Their wheels are in the parts; reading the file asks that the folder exists.
        if "://" not in link and Path(link).resolve().is_relative_to(home):
            (folder / Path(link).resolve().relative_to(home)).mkdir(parents=True, exist_ok=True)
