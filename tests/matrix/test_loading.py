"""Whole files: what they expand to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Matrix
from bisect_env.matrix.loading import load
from tests.matrix.conftest import Loader, Releases

EXAMPLE = """
name: torch x transformers
axes:
  torch: [2.11.0, 2.13.0]
  cuda: [cu128, cu130]
  transformers: ["5.6.0", "5.8.1"]
exclude:
  - {torch: 2.13.0, cuda: cu128}
requirements: [numpy]
index: {torch-backend: auto, urls: [], find-links: [], offline: false}
as_of: release
reproducer: racer
conditions: {threads: 3, pattern: [hot, barrier], cache: cold}   # lists are axes
trials: 12
controls: 12
reference: {torch: 2.11.0, cuda: cu128, transformers: "5.6.0"}   # one cell per condition
slow_below: 0.95
"""


def ids(matrix: Matrix) -> list[str]:
    return [cell.id for cell in matrix.cells]


def test_the_documented_example(loaded: Loader) -> None:
    matrix = loaded(EXAMPLE)
    assert matrix.name == "torch x transformers"
    assert matrix.axes == ("torch", "cuda", "transformers", "pattern")
    assert len(matrix.cells) == 3 * 2 * 2
    cell = matrix.cells[0]
    assert cell.id == "torch-2.11.0+cu128_transformers-5.6.0_hot"
    assert cell.tags == ("torch2.11", "cu128", "transformers5.6", "hot")
    assert cell.levels == (("torch", "2.11.0"), ("cuda", "cu128"), ("transformers", "5.6.0"), ("pattern", "hot"))
    assert cell.request.requirements == ("numpy", "torch==2.11.0", "transformers==5.6.0")
    assert (cell.request.cuda, cell.request.python, cell.request.as_of) == ("cu128", None, "release")
    assert cell.request.index.torch_backend == "auto"
    assert cell.condition.as_dict() == {
        "threads": 3,
        "pattern": "hot",
        "cache": "cold",
        "rate": 0.5,
        "warm_steps": 4,
        "fused": True,
        "label": "none",
    }
    assert (matrix.trials, matrix.controls, matrix.slow_below) == (12, 12, 0.95)
    last = matrix.cells[-1]
    assert last.id == "torch-2.13.0+cu130_transformers-5.8.1_barrier"
    reference = matrix.reference_of(last)
    assert reference is not None
    assert reference.id == "torch-2.11.0+cu128_transformers-5.6.0_barrier"


def test_defaults(loaded: Loader, matrix_file: Path) -> None:
    matrix = loaded("axes: {torch: 2.11.0}\ntrials: 7\n")
    assert matrix.name == "matrix"
    assert matrix.path == matrix_file
    assert matrix.controls == 7
    assert matrix.reference == ()
    assert matrix.limits.cells == 256
    assert matrix.cells[0].request.index.torch_backend is None
    assert loaded("axes: {torch: 2.11.0}\n").trials == 12


def test_an_unquoted_2_10_stays_2_10(loaded: Loader) -> None:
    matrix = loaded("axes: {torch: [2.10, 2.9]}\nenv: {A: 1.10}\nas_of: 2026-01-10\n")
    assert [cell.request.requirements for cell in matrix.cells] == [("torch==2.10",), ("torch==2.9",)]
    assert matrix.cells[0].levels == (("torch", "2.10"),)
    assert matrix.cells[0].variables == (("A", "1.10"),)
    assert matrix.cells[0].request.as_of == "2026-01-10"


def test_dashes_and_underscores_are_alike(loaded: Loader) -> None:
    dashes = loaded(
        "axes: {flash-attn: [2.8.0]}\nbuild-requirements: {flash-attn: [ninja]}\npass-env: [HF_TOKEN]\n"
        "as-of: release\nslow-below: 0.9\nlimits: {first-silence: 10, import-time: 5}\nindex: {find-links: [.]}\n"
        "conditions: {warm-steps: 2}\n"
    )
    underscores = loaded(
        "axes: {Flash_Attn: [2.8.0]}\nbuild_requirements: {flash_attn: [ninja]}\npass_env: [HF_TOKEN]\n"
        "as_of: release\nslow_below: 0.9\nlimits: {first_silence: 10, import_time: 5}\nindex: {find_links: [.]}\n"
        "conditions: {warm_steps: 2}\n"
    )
    assert dashes == underscores
    assert dashes.cells[0].request.build_requirements == (("flash-attn", ("ninja",)),)
    assert dashes.cells[0].condition.get("warm_steps", 0) == 2
    assert (dashes.limits.first_silence, dashes.limits.import_time) == (10.0, 5.0)


def test_python_is_an_axis(loaded: Loader) -> None:
    matrix = loaded("axes: {python: [3.11, 3.12.1]}\n")
    assert [cell.request.python for cell in matrix.cells] == ["3.11", "3.12.1"]
    assert matrix.cells[0].tags == ("py3.11",)
    assert ids(matrix)[0] == "python-3.11"


@pytest.mark.parametrize(
    "axes", ["{OMP_NUM_THREADS: [1, null], torch: 2.11.0}", "{env: {OMP_NUM_THREADS: [1, null]}, torch: 2.11.0}"]
)
def test_variables_are_axes_in_both_spellings(loaded: Loader, axes: str) -> None:
    matrix = loaded(f"axes: {axes}\nenv: {{OTHER: x}}\n")
    assert matrix.axes == ("OMP_NUM_THREADS", "torch")
    assert [cell.variables for cell in matrix.cells] == [
        (("OMP_NUM_THREADS", "1"), ("OTHER", "x")),
        (("OTHER", "x"),),
    ]
    assert ids(matrix) == ["OMP_NUM_THREADS-1_torch-2.11.0", "OMP_NUM_THREADS-unset_torch-2.11.0"]
    assert matrix.cells[0].condition_key != matrix.cells[1].condition_key
    assert matrix.cells[0].request == matrix.cells[1].request


def test_a_quoted_null_is_the_text(loaded: Loader) -> None:
    assert loaded("axes: {LEVEL: ['null', null]}\n").cells[0].variables == (("LEVEL", "null"),)


def test_a_distribution_can_be_absent(loaded: Loader) -> None:
    matrix = loaded("axes: {torch: 2.11.0, flash-attn: [null, 2.8.0]}\n")
    assert [cell.request.requirements for cell in matrix.cells] == [
        ("torch==2.11.0",),
        ("flash-attn==2.8.0", "torch==2.11.0"),
    ]
    assert ids(matrix)[0] == "torch-2.11.0_flash-attn-none"


def test_a_local_version_is_the_variant(loaded: Loader) -> None:
    beside = loaded("axes: {torch: [2.11.0], cuda: [cu130]}\n").cells[0]
    within = loaded("axes: {torch: [2.11.0+cu130]}\nindex: {torch-backend: auto}\n").cells[0]
    assert within.request == beside.request
    assert within.id == beside.id == "torch-2.11.0+cu130"
    assert set(within.tags) == set(beside.tags) == {"torch2.11", "cu130"}


def test_variants_come_from_pytorchs_indexes_unless_said_otherwise(loaded: Loader) -> None:
    def backend(text: str) -> str | None:
        return loaded("axes: {torch: 2.11.0, cuda: cu130}\n" + text).cells[0].request.index.torch_backend

    assert backend("") == "auto"
    assert backend("index: {urls: [https://mirror.example/simple]}\n") is None
    assert backend("index: {torch-backend: none}\n") is None
    assert backend("index: {torch-backend: auto, urls: [https://mirror.example/simple]}\n") == "auto"


def test_ranges_become_released_versions(loaded: Loader) -> None:
    releases = Releases("2.10.0", "2.11.0", "2.12.0rc1", "2.12.0", "2.12.1", "2.15.0", yanked=["2.12.0"])
    matrix = loaded('axes: {torch: [">=2.11,<2.15", 2.15.0]}\n', releases)
    assert [dict(cell.levels)["torch"] for cell in matrix.cells] == ["2.11.0", "2.12.1", "2.15.0"]
    assert matrix.cells[0].request.requirements == ("torch==2.11.0",)
    assert matrix.notes == ("torch >=2.11,<2.15 stands for 2.11.0, 2.12.1",)
    assert [name for name, _ in releases.asked] == ["torch"]


def test_a_range_and_a_version_within_it_are_no_duplicate(loaded: Loader) -> None:
    releases = Releases("2.11.0", "2.12.0")
    for levels in ('[">=2.11", 2.12.0]', '[2.12.0, ">=2.11"]', '[">=2.11", ">=2.12"]'):
        assert len(loaded(f"axes: {{torch: {levels}}}\n", releases).cells) == 2


def test_a_range_ends_where_as_of_does(loaded: Loader) -> None:
    releases = Releases("2.11.0", "2.12.0", dates={"2.11.0": "2026-01-01", "2.12.0": "2026-06-01"})
    assert len(loaded('axes: {torch: ">=2"}\nas_of: 2026-03-01\n', releases).cells) == 1
    assert len(loaded('axes: {torch: ">=2"}\nas_of: 2026-06-01\n', releases).cells) == 2
    assert len(loaded('axes: {torch: ">=2"}\nas_of: release\n', releases).cells) == 2


def test_the_index_of_the_file_is_asked(loaded: Loader) -> None:
    releases = Releases("2.11.0")
    loaded('axes: {torch: ">=2"}\nindex: {urls: [https://mirror.example/simple], offline: true}\n', releases)
    (_, index), *_ = releases.asked
    assert index.urls == ("https://mirror.example/simple",)
    assert index.offline


def test_without_a_range_no_index_is_asked(loaded: Loader) -> None:
    releases = Releases()
    loaded(EXAMPLE, releases)
    assert releases.asked == []


def test_sources_are_levels(loaded: Loader, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    matrix = loaded("axes: {transformers: [5.8.1, git+https://example.org/t.git@v5.9, ./tree]}\n")
    assert [cell.request.requirements[0] for cell in matrix.cells] == [
        "transformers==5.8.1",
        "transformers @ git+https://example.org/t.git@v5.9",
        f"transformers @ {(tmp_path / 'tree').as_uri()}",
    ]
    assert ids(matrix) == ["transformers-5.8.1", "transformers-git-v5.9", "transformers-tree"]
    assert [cell.tags for cell in matrix.cells] == [
        ("transformers5.8",),
        ("transformers-git-v5.9",),
        ("transformers-tree",),
    ]


def test_paths_start_at_the_file(
    loaded: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, matrix_file: Path
) -> None:
    for name in ("wheels", "tree", "cache", "venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    real = tmp_path / "real-python"
    real.touch()
    (tmp_path / "venv/bin/python").symlink_to(real)
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(tmp_path))
    matrix = loaded(
        "axes: {torch: 2.11.0}\nindex: {find-links: [wheels, ~/wheels], urls: [./wheels]}\nbase: venv\n"
        "requirements: [mine @ ./tree]\nconditions: {cache: ./cache}\n"
    )
    request = matrix.cells[0].request
    assert request.index.find_links == (str(tmp_path / "wheels"),) * 2
    assert request.index.urls == ((tmp_path / "wheels").as_uri(),)
    # The link itself: what it points to is an interpreter without the venv's packages.
    assert request.base == str(tmp_path / "venv/bin/python")
    assert f"mine @ {(tmp_path / 'tree').as_uri()}" in request.requirements
    assert matrix.cells[0].condition.cache == str(tmp_path / "cache")


def test_a_command_of_ones_own(loaded: Loader, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    matrix = loaded(
        "axes: {torch: 2.11.0}\nconditions: {steps: [10, 2.10], fast: true, threads: 4}\n"
        "reproducer: {command: python train.py --fast, files: train.py, fail-pattern: 'FX|nan', skip-pattern: no GPU}\n"
    )
    assert matrix.reproducer.name == "train"
    assert matrix.reproducer.command == ("python", "train.py", "--fast")
    assert matrix.reproducer.files == (tmp_path / "train.py",)
    assert (matrix.reproducer.fail_pattern, matrix.reproducer.skip_pattern) == ("FX|nan", "no GPU")
    assert [cell.condition.get("steps", 0) for cell in matrix.cells] == [10, "2.10"]
    assert matrix.cells[0].condition.as_dict() == {
        "cache": "cold",
        "device": "auto",
        "threads": 4,
        "steps": 10,
        "fast": True,
    }
    assert ids(matrix) == ["torch-2.11.0_steps-10", "torch-2.11.0_steps-2.10"]


def test_include_adds_cells_levels_and_conditions(loaded: Loader) -> None:
    matrix = loaded(
        "axes: {torch: [2.11.0, 2.12.0]}\nconditions: {pattern: [hot, barrier], threads: 2}\n"
        "include:\n  - {torch: 2.12.0, numpy: 2.1.0}\n  - {torch: 2.13.0}\n"
        "  - {torch: 2.11.0, pattern: hot, threads: 4}\n"
    )
    assert matrix.axes == ("torch", "pattern", "threads", "numpy")
    assert len(matrix.cells) == 4 + 2
    rows = {cell.id: cell for cell in matrix.cells}
    assert rows["torch-2.11.0_hot_threads-4"].condition.threads == 4
    assert rows["torch-2.12.0_hot_threads-2_numpy-2.1.0"].request.requirements == ("numpy==2.1.0", "torch==2.12.0")
    assert "torch-2.13.0_barrier_threads-2" in rows


def test_one_level_is_a_column_under_axes_but_not_under_conditions(loaded: Loader) -> None:
    assert loaded("axes: {torch: [2.11.0]}\nconditions: {pattern: [hot], threads: 2}\n").axes == ("torch",)


def test_a_matrix_without_axes_is_one_cell(loaded: Loader) -> None:
    matrix = loaded("name: just this!\nrequirements: [torch==2.11.0]\n")
    assert ids(matrix) == ["just-this"]


def test_requests_do_not_depend_on_the_order_in_the_file(loaded: Loader) -> None:
    one = loaded("axes: {torch: 2.11.0, transformers: 5.8.1}\nrequirements: [numpy, pip]\nenv: {A: 1, B: 2}\n")
    two = loaded("axes: {transformers: 5.8.1, torch: 2.11.0}\nrequirements: [pip, numpy]\nenv: {B: 2, A: 1}\n")
    assert one.cells[0].key == two.cells[0].key


def test_credentials_make_no_other_request_and_show_nowhere(loaded: Loader) -> None:
    def with_token(token: str) -> Matrix:
        return loaded(f"axes: {{torch: 2.11.0}}\nindex: {{urls: ['https://me:{token}@mirror.example/simple']}}\n")

    one, two = with_token("hunter2"), with_token("swordfish")
    assert one.cells[0].request.index.urls == ("https://me:hunter2@mirror.example/simple",)
    assert one.cells[0].key == two.cells[0].key
    assert one.cells[0].request.key == two.cells[0].request.key
    assert "hunter2" not in repr(one)


def test_conditions_are_ready_for_json(loaded: Loader) -> None:
    for cell in loaded(EXAMPLE).cells:
        assert json.loads(json.dumps(cell.condition.as_dict())) == cell.condition.as_dict()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "nothing.yaml")


def test_a_git_repository_on_this_machine(loaded: Loader, tmp_path: Path) -> None:
    repository = tmp_path / "a @ b"
    repository.mkdir()
    url = f"git+{repository.as_uri()}"
    for source in (url, f"{url}@main"):
        (cell,) = loaded(f"requirements: ['x @ {source}']").cells
        assert cell.request.requirements == (f"x @ {source}",)


def test_how_trials_are_run(loaded: Loader) -> None:
    plain = loaded("axes: {torch: 2.11.0}\n")
    assert (plain.solo, plain.at_once, plain.stop_early) == (None, 1, True)
    matrix = loaded("axes: {torch: 2.11.0}\nsolo: 0\nat-once: 10\nstop-early: false\n")
    assert (matrix.solo, matrix.at_once, matrix.stop_early) == (0, 10, False)


def test_a_stale_cache_is_filled_by_the_nearest_cell_with_another_torch(loaded: Loader) -> None:
    matrix = loaded(
        "axes: {torch: [2.11.0, 2.14.1], torchvision: [0.1, 0.2], numpy: [2.1, 2.2]}\n"
        "conditions: {cache: [cold, stale]}\nexclude: [{torch: 2.14.1, numpy: 2.1, torchvision: 0.2}]\n"
    )
    rows = {cell.id: cell for cell in matrix.cells}

    def source(name: str) -> str:
        found = matrix.stale_source_of(rows[name])
        assert found is not None
        return found.id

    assert source("torch-2.11.0_torchvision-0.2_numpy-2.2_stale") == "torch-2.14.1_torchvision-0.2_numpy-2.2_stale"
    # Its twin is excluded: the first of the next nearest.
    assert source("torch-2.11.0_torchvision-0.2_numpy-2.1_stale") == "torch-2.14.1_torchvision-0.1_numpy-2.1_stale"


def test_another_variant_of_torch_fills_a_stale_cache_too(loaded: Loader) -> None:
    matrix = loaded("axes: {torch: 2.11.0, cuda: [cu128, cu130]}\nconditions: {cache: stale}\n")
    found = [matrix.stale_source_of(cell) for cell in matrix.cells]
    assert found == [matrix.cells[1], matrix.cells[0]]
    alone = replace(matrix, cells=matrix.cells[:1], left_out=matrix.cells[1:])
    assert alone.stale_source_of(alone.cells[0]) == matrix.cells[1]
