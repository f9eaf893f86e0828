"""What reaches a trial. Every leak that the design names is tried with a real child process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.trials.isolation import compiler_folders, driver_folder, isolate
from bisect_env.trials.records import Device, TrialRecord
from tests.trials.scripts import READY, run_script, spec_of

TELL = """
import site, sys, tempfile
from pathlib import Path
print("BEGIN" + json.dumps({
    "variables": dict(os.environ), "path": sys.path, "modules": sorted(sys.modules), "home": str(Path.home()),
    "tmp": tempfile.gettempdir(), "user_site": site.ENABLE_USER_SITE, "prefix": sys.pycache_prefix,
    "dont_write": sys.dont_write_bytecode, "optimize": sys.flags.optimize, "maps": Path("/proc/self/maps").read_text(),
}) + "END")
say("done")
"""


def tell(folder: Path, **changes: object) -> tuple[dict[str, object], TrialRecord]:
    record = run_script(folder, TELL, start=READY, **changes)
    assert record.outcome == "clean", record
    return json.loads(record.output.partition("BEGIN")[2].partition("END")[0]), record


def modules(folder: Path, *names: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text("import sys\nprint('POISONED')\n")
    return str(folder)


def user_site(folder: Path) -> Path:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return folder / ".local" / "lib" / version / "site-packages"


def shared_library(folder: Path) -> str:
    source = folder / "poison.c"
    source.write_text("int bisect_env_poison = 1;\n")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a library with")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libpoison.so"), str(source)], check=True)
    return str(folder / "libpoison.so")


LEAKS: dict[str, Callable[[Path], str]] = {
    "PYTHONPATH": lambda folder: modules(folder / "path", "sitecustomize", "usercustomize", "json"),
    "PYTHONSTARTUP": lambda folder: modules(folder / "startup", "start") + "/start.py",
    "PYTHONUSERBASE": lambda folder: (
        modules(user_site(folder / "base"), "usercustomize", "torch") and str(folder / "base")
    ),
    "HOME": lambda folder: modules(user_site(folder / "home"), "usercustomize", "torch") and str(folder / "home"),
    "PYTHONHOME": str,
    "PYTHONOPTIMIZE": lambda _: "2",
    "PYTHONPYCACHEPREFIX": str,
    "PYTHONDONTWRITEBYTECODE": lambda _: "1",
    "PYTHONINSPECT": lambda _: "1",
    "PYTHONWARNINGS": lambda _: "error",
    "LD_PRELOAD": shared_library,
    "LD_LIBRARY_PATH": str,
    "TORCHINDUCTOR_CACHE_DIR": str,
    "TRITON_CACHE_DIR": str,
    "CUDA_CACHE_PATH": str,
    "XDG_CACHE_HOME": str,
    "TMPDIR": str,
    "CUDA_VISIBLE_DEVICES": lambda _: "0,1",
    "CUDA_DEVICE_ORDER": lambda _: "FASTEST_FIRST",
    "CUDA_LAUNCH_BLOCKING": lambda _: "1",
    "CUDA_HOME": str,
    "TORCH_COMPILE_DISABLE": lambda _: "1",
    "TORCHDYNAMO_DISABLE": lambda _: "1",
    "TORCHINDUCTOR_FX_GRAPH_CACHE": lambda _: "0",
    "PYTORCH_CUDA_ALLOC_CONF": lambda _: "max_split_size_mb:1",
    "TRITON_DEBUG": lambda _: "1",
    "NCCL_DEBUG": lambda _: "INFO",
    "HF_HOME": str,
    "TRANSFORMERS_CACHE": str,
    "OMP_NUM_THREADS": lambda _: "1",
    "MKL_NUM_THREADS": lambda _: "1",
    "CONDA_PREFIX": str,
    "VIRTUAL_ENV": str,
    "CXX": lambda _: "false",
    "LIBRARY_PATH": str,
    "MALLOC_PERTURB_": lambda _: "1",
    "A_NAME_NOBODY_THOUGHT_OF": lambda _: "1",
}
NOT_NAMED = {"HOME", "A_NAME_NOBODY_THOUGHT_OF"}


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, object], TrialRecord]:
    """One trial under a parent with all of the poison."""
    folder = tmp_path_factory.mktemp("poison")
    values = {name: make(folder) for name, make in LEAKS.items()}
    (folder / "trial-parent").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        # The supervisor's own interpreter is the parent's; these two would stop or instrument it, not the trial.
        for name, value in values.items():
            if name not in ("PYTHONHOME", "LD_PRELOAD"):
                patch.setenv(name, value)
        patch.setenv("LD_PRELOAD", values["LD_PRELOAD"])
        patch.setenv("PYTHONHOME", values["PYTHONHOME"])
        told, record = tell(folder / "trial-parent")
    return values, told, record


@pytest.mark.parametrize("name", LEAKS)
def test_does_not_arrive(name: str, poisoned: tuple[dict[str, str], dict[str, object], TrialRecord]) -> None:
    values, told, record = poisoned
    variables = told["variables"]
    assert isinstance(variables, dict)
    assert variables.get(name) != values[name]
    assert (name in record.withheld) is (name not in NOT_NAMED)
    assert values[name] not in dict(record.environment_variables).values() or len(values[name]) < 4


def test_nothing_of_the_poison_is_loaded(poisoned: tuple[dict[str, str], dict[str, object], TrialRecord]) -> None:
    values, told, record = poisoned
    assert "POISONED" not in record.output
    assert "libpoison" not in str(told["maps"])
    for place in ("PYTHONPATH", "HOME", "PYTHONUSERBASE"):
        assert not any(str(entry).startswith(values[place]) for entry in told["path"])  # type: ignore[attr-defined]
    assert told["user_site"] is False and told["optimize"] == 0 and told["dont_write"] is False
    for key in ("home", "tmp"):
        assert str(told[key]).startswith(str(Path(str(told["prefix"])).parent / "trial"))


def test_what_was_asked_for_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("MY_OPTION", "1")
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    monkeypatch.setenv("PROXY", "http://me:pass@proxy:3128?token=abcd")
    told, record = tell(
        tmp_path,
        pass_env=("NCCL_*", "HF_TOKEN", "PROXY", "CUDA_VISIBLE_DEVICES"),
        variables=(("TORCH_LOGS", "recompiles"), ("CUDA_VISIBLE_DEVICES", "0"), ("LD_LIBRARY_PATH", "/x")),
    )
    variables = told["variables"]
    assert isinstance(variables, dict)
    assert variables["NCCL_ALGO"] == "Ring" and variables["TORCH_LOGS"] == "recompiles"
    assert "MY_OPTION" not in variables and variables["LD_LIBRARY_PATH"] == "/x"
    assert variables["CUDA_VISIBLE_DEVICES"] == "", "nothing moves a trial off its lease"
    shown = dict(record.environment_variables)
    assert shown["HF_TOKEN"] == "<secret>" and shown["PROXY"] == "http://<secret>@proxy:3128?token=***"
    assert "NCCL_ALGO" not in record.withheld


def test_secrets_that_a_trial_prints_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    body = "print('token', os.environ['HF_TOKEN'])\nsay('note', key='a', value=os.environ['HF_TOKEN'])\nsay('done')\n"
    record = run_script(tmp_path, body, pass_env=("HF_TOKEN",))
    assert "token <secret>" in record.output
    assert "hf_very_secret" not in repr(record)


def test_leased_devices_are_the_visible_ones(tmp_path: Path) -> None:
    devices = tuple(Device(f"GPU-{n}", "H200", n, 1, "580") for n in (5, 6))
    spec = spec_of(tmp_path, "", devices=devices)
    variables = isolate(spec, {"CUDA_VISIBLE_DEVICES": "0"}, driver=tmp_path / "driver").variables
    assert variables["CUDA_VISIBLE_DEVICES"] == "GPU-5,GPU-6" and variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert variables["LD_LIBRARY_PATH"] == str(tmp_path / "driver")


def test_driver_libraries_are_linked_and_nothing_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "nvidia"
    source.mkdir()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.13", "libstdc++.so.6"):
        (source / name).touch()
    parent = {"LD_LIBRARY_PATH": f"/nowhere::{source}"}
    monkeypatch.setattr("bisect_env.trials.isolation._loader_finds_driver", lambda: False)
    folder = driver_folder(parent, tmp_path / "driver")
    assert folder is not None
    assert sorted(link.name for link in folder.iterdir()) == ["libcuda.so.1", "libnvidia-ml.so.1"]
    assert driver_folder({}, tmp_path / "none") is None
    monkeypatch.setattr("bisect_env.trials.isolation._loader_finds_driver", lambda: True)
    assert driver_folder(parent, tmp_path / "other") is None and not (tmp_path / "other").exists()


def test_the_compilers_folder_is_added_only_where_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setattr("bisect_env.trials.isolation.SYSTEM_FOLDERS", ("/nowhere",))
    assert compiler_folders(f"/nowhere:{tmp_path}") == (str(tmp_path),)
    assert compiler_folders("/nowhere") == ()
    (tmp_path / "sys").mkdir()
    shutil.copy(compiler, tmp_path / "sys" / "gcc")
    monkeypatch.setattr("bisect_env.trials.isolation.SYSTEM_FOLDERS", (str(tmp_path / "sys"),))
    assert compiler_folders(str(tmp_path)) == ()
