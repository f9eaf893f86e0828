"""What killed runs leave behind."""

from __future__ import annotations

import shutil

from bisect_env.store.database import Store


def sweep(store: Store) -> None:
    """Remove the folders of trials whose run is dead."""
    for left in store.stale_in_flight():
        shutil.rmtree(left.folder, ignore_errors=True)
        store.clear_in_flight(left.trial_id)
