"""A matrix file, read, checked and expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bisect_env.matrix import assembly, executor, shipped
from bisect_env.matrix.cells import Cell, Matrix, Scalar
from bisect_env.matrix.document import Document, Loc, read
from bisect_env.matrix.expansion import Combined, combine
from bisect_env.matrix.levels import Levels
from bisect_env.matrix.options import Option
from bisect_env.matrix.schema import MatrixFile, validate
from bisect_env.matrix.settings import Settings
from bisect_env.matrix.versions import ReleaseSource
from bisect_env.matrix.vocabulary import RESERVED, Kind, Vocabulary

_COMMAND_DEFAULTS: dict[str, Scalar] = {"threads": 2, "device": "auto"}


def load(path: Path, releases: ReleaseSource | None = None, *, reproducers: Path | None = None) -> Matrix:
    """The matrix of a file.

    Args:
        path: the file; relative paths in it start at its folder.
        releases: where the releases that a version range stands for are looked up. Asked only when the file has a
            range; None refuses ranges. What it raises passes through.
        reproducers: folder of the reproducers that can be named; None takes the shipped ones.

    Raises:
        BadInput: the file, or something it names, cannot be used. Nothing has been built or written.
    """
    document = read(path)
    file = validate(document)
    settings = Settings(document, file)
    reproducer, options = settings.reproducer(reproducers or shipped.reproducers_folder())
    words = _vocabulary(settings, file, reproducer.name, options)
    index = settings.index(_asks_for_cuda(file))
    levels = Levels(document, file, words, index, releases)
    axes, include = levels.axes(), levels.include()
    exclude = levels.exclude(axes)
    limits = settings.limits()
    with document.at("axes"):
        combined = combine(axes, include, exclude, limits.cells)
    if not combined:
        raise document.bad(("exclude",), "no cell left: exclude takes them all", "an exclude that leaves some")
    common = assembly.Common(
        request=settings.request(index),
        condition=default_condition(options) | levels.fixed_conditions(),
        variables=settings.variables(),
        name=file.name or path.stem,
    )
    set_here = _variables_set(settings, file, words)
    with document.at("axes"):
        assembled = assembly.assemble(combined, axes, words, common)
    _refuse_duplicates(document, combined, assembled.cells)
    reference: tuple[tuple[str, str], ...] = ()
    if wanted := levels.reference():
        with document.at("reference"):
            reference = assembly.reference_levels(wanted, combined, assembled.cells)
    matrix = Matrix(
        name=common.name,
        path=path.absolute(),
        cells=assembled.cells,
        axes=assembled.columns,
        reproducer=reproducer,
        trials=file.trials,
        controls=file.trials if file.controls is None else file.controls,
        reference=reference,
        slow_below=file.slow_below,
        limits=limits,
        pass_env=settings.pass_env(set_here),
        solo=file.solo,
        at_once=file.at_once,
        stop_early=file.stop_early,
        notes=tuple(levels.notes),
        executor=executor.choice(file.executor),
    )
    _refuse_stale_alone(document, matrix)
    return matrix


def _vocabulary(
    settings: Settings, file: MatrixFile, reproducer: str, options: Mapping[str, Option] | None
) -> Vocabulary:
    return Vocabulary(
        folder=settings.folder,
        options=options,
        reproducer=reproducer,
        conditions=tuple(key.replace("-", "_") for key in file.conditions),
    )


def _asks_for_cuda(file: MatrixFile) -> bool:
    return "cuda" in file.axes or any("cuda" in entry for entry in file.include)


def default_condition(options: Mapping[str, Option] | None) -> dict[str, Scalar]:
    """A condition before the file has said anything: all options of the reproducer, so that the record is complete."""
    known = _COMMAND_DEFAULTS if options is None else {name: option.default for name, option in options.items()}
    return {"cache": "cold"} | {name: value for name, value in known.items() if name not in RESERVED}


def _variables_set(settings: Settings, file: MatrixFile, words: Vocabulary) -> dict[str, Loc]:
    """The variables that the file sets, with the place of each; one can be an axis or fixed, not both."""
    own: dict[str, Loc] = {name: ("env", name) for name in file.env}
    named: list[tuple[str, Loc]] = [(name, ("axes", name)) for name in file.axes]
    named += [(name, ("include", at, name)) for at, entry in enumerate(file.include) for name in entry]
    for name, path in named:
        if words.kind(name) is not Kind.VARIABLE:
            continue
        settings.check_variable(path, name)
        if name in file.env and path[0] == "axes":
            found = f"{name} is an axis, and fixed under env too ({settings.document.place(('env', name))})"
            raise settings.document.bad(path, found, "one of the two")
        own.setdefault(name, path)
    return own


def _refuse_duplicates(document: Document, combined: Sequence[Combined], cells: Sequence[Cell]) -> None:
    found = assembly.duplicates(cells)
    if found is None:
        return
    first, second = (_described(combined[at], cells[at]) for at in found)
    added_by = combined[found[1]].added_by
    path: Loc = ("axes",) if added_by is None else ("include", added_by)
    raise document.bad(path, f"two cells are the same: {first} and {second}", "each cell once")


def _refuse_stale_alone(document: Document, matrix: Matrix) -> None:
    for cell in matrix.cells:
        if cell.condition.cache == "stale" and matrix.stale_source_of(cell) is None:
            found = f"cache: stale for {cell.id}, and no cell with another torch"
            wanted = "a cell with another torch, or another cuda, to fill the cache; or cache: cold, warm or a folder"
            raise document.bad(("conditions", "cache"), found, wanted)


def _described(combined: Combined, cell: Cell) -> str:
    levels = ", ".join(f"{name} {text}" for name, text in cell.levels) or cell.id
    return levels + (" (of the axes)" if combined.added_by is None else f" (include[{combined.added_by}])")
