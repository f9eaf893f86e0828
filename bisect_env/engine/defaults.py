"""Which shipped matrix a command without a file takes."""

from __future__ import annotations

from pathlib import Path

from bisect_env.matrix import shipped
from bisect_env.trials import gpu


def default_matrix(selection: str | None = None) -> tuple[Path, str]:
    """The shipped matrix for this machine, and a sentence that says which and why."""
    choice = gpu.survey(selection)
    devices = choice.devices
    if devices:
        names = ", ".join(sorted({device.name for device in devices}))
        count = f"{len(devices)} GPU{'s' if len(devices) > 1 else ''}"
        path = shipped.matrices_folder() / "gpu.yaml"
        return path, f"No matrix named: taking {path}, since {count} can be used ({names})."
    path = shipped.matrices_folder() / "cpu.yaml"
    return path, f"No matrix named: taking {path}, since no GPU can be used ({'; '.join(choice.notes)})."
