"""Where all threads stand while one of them waits long for a lock: what a process that hangs cannot tell itself.

Looked at from the writer's thread, which holds no lock of the program's. Of a hang this is what shows for what the
lock's holder waits. Twice the same place, seconds apart, is a thread that stands still.
"""

from __future__ import annotations

import sys

from witness_lanes import Lanes, clock
from witness_targets import STANDING

LONG = 5.0
"""Seconds of a wait behind which it is told; again each time that the wait has doubled."""


def look(lanes: Lanes) -> None:
    """Tell it where a wait has become so long."""
    t = clock()
    every = list(lanes.all)
    late = [lane for lane in every if (since := lane.waits) is not None and t - since >= max(LONG, 2 * lane.stood)]
    if not late:
        return
    for lane in late:
        lane.stood = t - (lane.waits or t)
    frames = sys._current_frames()
    # Idents are given again when a thread has ended: the last lane of one is who has it now, if it is there still.
    for ident, lane in {lane.ident: lane for lane in every if lane.lives}.items():
        if ident in frames:
            lanes.keep(lane, (t, lane.name, STANDING, "seen", "", lanes.stack_from(frames[ident])))
