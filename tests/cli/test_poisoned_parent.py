"""Whatever the parent's environment holds, no verdict changes and nothing of it reaches a trial."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.index import refusing_url
from tests.support.racing import World

BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: [4.52.4, 5.8.1]}
exclude: [{torch: 2.11.0, transformers: 5.8.1}]
trials: 4
controls: 4
"""
SITECUSTOMIZE = """\
import os, sys
with open({log!r}, "a") as log:
    log.write(sys.executable + "\\n")
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "transformers"):
            raise ImportError("the parent's sitecustomize broke " + name)
sys.meta_path.insert(0, Broken())
"""


def poison(folder: Path) -> dict[str, str]:
    """Every way in which a parent is known to change what its children import, compile or install."""
    site, home, cache = folder / "site", folder / "home", folder / "inductor"
    user = home / ".local" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for place in (site, user, cache):
        place.mkdir(parents=True)
    text = SITECUSTOMIZE.format(log=str(folder / "log"))
    (site / "sitecustomize.py").write_text(text)
    (user / "usercustomize.py").write_text(text)
    for place in (site, user):
        (place / "torch").mkdir()
        (place / "torch" / "__init__.py").write_text("raise SystemExit('the parent torch')")
    (cache / "entry").write_text("rubbish")
    (folder / "constraints.txt").write_text("torch==9.9\ntransformers==9.9\n")
    (folder / "uv.toml").write_text("offline = true\nno-index = true\n")
    nowhere, constraints, rubbish = refusing_url(), str(folder / "constraints.txt"), str(cache)
    return {
        "HOME": str(home),
        "PYTHONPATH": str(site),
        "PYTHONUSERBASE": str(home / ".local"),
        "PYTHONSTARTUP": str(site / "sitecustomize.py"),
        "PYTHONOPTIMIZE": "1",
        "LD_PRELOAD": "/nonexistent/libpreload.so",
        "LD_LIBRARY_PATH": str(site),
        "TORCHINDUCTOR_CACHE_DIR": rubbish,
        "TRITON_CACHE_DIR": rubbish,
        "CUDA_CACHE_PATH": rubbish,
        "XDG_CACHE_HOME": rubbish,
        "TORCH_LOGS": "+dynamo",
        "TORCHDYNAMO_DISABLE": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:1",
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_DEBUG": "INFO",
        "OMP_NUM_THREADS": "1",
        "HF_HOME": rubbish,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_CACHE": rubbish,
        "VIRTUAL_ENV": str(folder / "venv"),
        "CONDA_PREFIX": str(folder / "conda"),
        "CONDA_DEFAULT_ENV": "base",
        "UV_INDEX_URL": nowhere,
        "UV_DEFAULT_INDEX": nowhere,
        "UV_EXTRA_INDEX_URL": nowhere,
        "UV_CONSTRAINT": constraints,
        "UV_OVERRIDE": constraints,
        "UV_EXCLUDE_NEWER": "2001-01-01",
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_PYTHON": "3.7",
        "UV_SYSTEM_PYTHON": "1",
        "UV_CONFIG_FILE": str(folder / "uv.toml"),
        "UV_REQUIRE_HASHES": "1",
        "UV_PRERELEASE": "allow",
        "UV_RESOLUTION": "lowest",
        "UV_NO_BINARY": "1",
        "UV_TORCH_BACKEND": "cu130",
        "PIP_INDEX_URL": nowhere,
        "PIP_CONSTRAINT": constraints,
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_NO_BINARY": ":all:",
    }


def test_no_verdict_changes(world: World, tmp_path: Path) -> None:
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("4.52.4")
    world.transformers("5.8.1", dense=31)
    world.matrix(BODY)
    variables = poison(tmp_path)
    finished = world.run("matrix", "matrix.yaml", "--json", "document.json", variables=variables)
    assert finished.returncode == 0, finished.stderr
    verdicts = [cell["verdict"]["text"] for cell in world.document("matrix.yaml")["cells"]]
    assert verdicts == ["RACE 4/4", "FULL", "DENSE 31 %"]
    assert "1 not counted" not in finished.stdout and "was not warm" not in finished.stdout

    # The poison works: the command itself had it. No interpreter under test did.
    executables = set((tmp_path / "log").read_text().split())
    assert sys.executable in executables
    assert not [path for path in executables if str(world.store) in path]
    trial = world.trials()[0][0]
    shown = world.run("show", trial).stdout
    assert "0 hits, 1 misses" in shown, "the parent's compile cache served no trial"
    withheld = shown.partition("Withheld from it (names only)\n")[2].partition("\n\n")[0].split()
    trial_has = shown.partition("Variables it got\n")[2].partition("\n\n")[0]
    for name in variables:
        if not name.startswith(("UV_", "PIP_")) and name != "HOME":
            assert name in withheld, f"{name} is not said to be withheld"
        assert variables[name] not in trial_has.split() or variables[name] in ("0", "1")
    assert "ld.so" not in shown
