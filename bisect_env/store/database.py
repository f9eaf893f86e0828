"""The project's store: every trial with its evidence, and what is known of cells, locks and environments.

Several threads of a process and several processes may use it at once. Each method is one transaction: a process killed
at any moment leaves the store as it was before or after a call, never in between.
"""

from __future__ import annotations

from bisect_env.store.cells import Cells
from bisect_env.store.environments import Environments
from bisect_env.store.runs import Runs
from bisect_env.store.trials import Trials


class Store(Cells, Environments, Trials, Runs):
    """``Store(path)`` opens the SQLite file, and makes it and its folders when missing; closed as a context manager.
    ``Store(path, read_only=True)`` shows what the file holds now and touches nothing.

    Raises:
        BadInput: the file belongs to a newer version, or to another program.
        InfrastructureError: from here and from every method: the file is damaged, the disk is full or does not answer.
    """
