"""``bisect-env clean``: what takes space, and frees what no stored cell needs."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from tabulate import tabulate

from bisect_env.bundles.destination import WHEELS
from bisect_env.bundles.records import DELIVERED
from bisect_env.cli.common import STORE_FILE, project_folder, root_option, say
from bisect_env.engine import cleaning
from bisect_env.engine.disk import size
from bisect_env.environments.records import Lock
from bisect_env.errors import BadInput
from bisect_env.store.database import Store


@click.command("clean", short_help="What environments and caches take; frees what is unused.")
@root_option
@click.option("--dry-run", "dry", is_flag=True, help="Only show.")
@click.option("--all", "everything", is_flag=True, help="Remove used environments and prepared caches as well.")
def command(root: Path, dry: bool, everything: bool) -> None:
    """Show what environments, caches and what was fetched take, and remove what no stored cell needs; --all the rest.

    Results are never removed. An environment that a later run needs is built again, in seconds while uv still has its
    packages; `uv cache prune` and `uv cache clean` free those.
    """
    given, root = root, project_folder(root)
    if (root / STORE_FILE).exists():
        with Store(root / STORE_FILE) as store:
            in_use = {lock.address for lock in store.locks() if isinstance(lock, Lock)}
            running = {flight.trial_id for flight in store.in_flight()}
            items = cleaning.survey(root, in_use, running)
    else:
        # A host on which bundles are made, or versions inspected, need not have run anything.
        items = cleaning.without_a_run(root)
        if not items:
            raise BadInput("--store", str(given), "there is no store", "the folder of an earlier run")
    if not items:
        say("Nothing is built and nothing is cached.")
        return
    rows, freed = [], 0
    for item in items:
        in_work = item.kind in (cleaning.TRIAL_FOLDER, cleaning.JOB_FOLDER) and item.used
        goes = (everything or not item.used) and not in_work and item.kind != "delivered wheels"
        fate = "kept" if not goes else "would be removed" if dry else "removed"
        if goes:
            freed += item.own_bytes if dry else cleaning.remove(item, root)
        rows.append((item.kind, item.name, size(item.own_bytes), "yes" if item.used else "no", fate))
    say(tabulate(rows, ["what", "name", "frees", "in use", "now"], disable_numparse=True))
    say(f"\n{'Would free' if dry else 'Freed'} {size(freed)}. uv's own cache is not touched.")
    if any(item.kind == "delivered wheels" for item in items):
        wheels = shlex.quote(str(root / DELIVERED / WHEELS))
        say(f"Delivered wheels stay, for only a new delivery brings them back. When all are built: rm -r {wheels}")
