"""Repeats in one process: each begins with the compiled state and the compile caches as the first one had them.

What is reset, and why (torch 2.10 to 2.15): ``torch._dynamo.reset`` forgets what is cached by code object, so that the
next call traces anew. Inductor keeps what it loaded in memory (modules of generated code, compiled kernels); every such
cache is registered to be cleared by ``torch._inductor.utils.clear_caches``. The caches on disk, inductor's graphs,
AOTAutograd's, autotuning's and triton's kernels, are found through two environment variables at each use, in the
compile workers as well, which get them with each job. With these pointed at a new folder nothing is found there but
what the first repeat found.

It is called by the main thread while all workers wait. They are not ended: see ``Trial.work``.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protocol import Trial

FOLDERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def repeats_of(trial: Trial) -> Sequence[int]:
    """Numbers of the repeats that this trial does.

    The sides that are not counted do one; so does a trial that is asked for one repeat only.
    """
    only = trial.condition.get("only_repeat")
    if only is not None:
        return (only,)
    return range(trial.condition["repeats"] if trial.side in ("threads", "serial", "solo") else 1)


class CompiledState:
    """The compiled state at the start, and the way back to it."""

    def __init__(self, repeats: Sequence[int]) -> None:
        self.resets = 0
        self._originals: dict[str, Path] = {}
        if len(repeats) < 2:
            return
        self._kept = tempfile.TemporaryDirectory(prefix="dflash-caches-", ignore_cleanup_errors=True)
        for variable in FOLDERS:
            original = Path(self._kept.name) / "original" / variable
            found = os.environ.get(variable)
            if found and Path(found).is_dir():
                shutil.copytree(found, original)
            else:
                original.mkdir(parents=True)
            self._originals[variable] = original

    def reset(self) -> None:
        """Back to the start. No other thread may be doing anything."""
        torch: Any = importlib.import_module("torch")
        if torch.cuda.is_available():
            for device in range(torch.cuda.device_count()):
                torch.cuda.synchronize(device)
        self.resets += 1
        for variable, original in self._originals.items():
            folder = Path(self._kept.name) / str(self.resets) / variable
            shutil.copytree(original, folder)
            os.environ[variable] = str(folder)
        torch._dynamo.reset()
        importlib.import_module("torch._inductor.utils").clear_caches()
        gc.collect()  # models and compiled functions refer to themselves
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
