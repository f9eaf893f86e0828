"""Starts the witness in a trial's first Python process, and in none that it starts. Never imported by hand."""

import os
import sys
from pathlib import Path


def _begin() -> None:
    folder = str(Path(__file__).parent)
    path = os.environ.pop("BISECT_ENV_WITNESS", "")
    words = [word for word in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if word and word != folder]
    if words:
        os.environ["PYTHONPATH"] = os.pathsep.join(words)
    try:
        if path:
            import witness_importing

            witness_importing.begin(path)
    except Exception as error:  # noqa: BLE001 - the trial goes on without its witness, and says so
        print(f"witness: not started: {type(error).__name__}: {error}", file=sys.stderr)
    sys.path[:] = [word for word in sys.path if word != folder]
    _chain()


def _chain() -> None:
    """Run the sitecustomize that this one stands before, as `site` would have."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


_begin()
