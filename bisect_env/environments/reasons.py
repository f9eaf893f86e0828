"""What uv's words mean: its exit status is 1 for "no solution", for a refused password and for "offline" alike."""

from __future__ import annotations

import re

from bisect_env.environments.records import Reason, Unavailable
from bisect_env.environments.uv import Finished
from bisect_env.errors import InfrastructureError

DISK_FULL = re.compile(r"No space left on device|\(os error 28\)|Disk quota exceeded|\(os error 122\)")

SIGNS: tuple[tuple[Reason, str], ...] = (
    # A build's own output comes with it, and may speak of anything.
    (Reason.BUILD, r"build backend returned an error"),
    # In this order: a refused password and "offline" are told as "not found", with a hint below it.
    (
        Reason.CREDENTIALS,
        r"401 Unauthorized|403 Forbidden|lack of valid authentication|Missing credentials|"
        r"Authentication failed|could not read (Username|Password)|terminal prompts disabled|"
        r"Permission denied \(publickey",
    ),
    (
        Reason.OFFLINE,
        r"network was disabled|network connectivity is disabled|not found in the cache|Network connectivity",
    ),
    (
        Reason.INDEX_UNREACHABLE,
        r"error sending request|dns error|operation timed out|Connection (refused|reset)|tcp connect error|"
        r"HTTP status (server|client) error|Could not connect|Failed to connect|Couldn't connect to server|"
        r"Could not resolve host|Failed to fetch|Request failed after|unable to access '|error decoding response body",
    ),
    (
        Reason.NO_SUCH_VERSION,
        r"Distribution not found at|failed to find branch, tag, or commit|couldn't find remote ref",
    ),
    (Reason.BUILD, r"Failed to build|Failed to download and build"),
)

WITHOUT_RELEASE = re.compile(
    r"there (is|are) no versions? of|only \S+ (is|are) available|(was|were) not found in the|"
    r"filtered by `exclude-newer`|has no (usable )?wheels|no wheels with"
)
"""No release answers what was asked for, whatever the other requirements are."""

SHORT = 1200
"""Characters of uv's words that a message keeps."""


def explain(finished: Finished, stage: str = "resolve") -> Unavailable:
    """Why a run of uv that did not succeed failed. ``stage`` as in :class:`Unavailable`.

    Raises InfrastructureError for a full disk, and when uv itself died (by a signal, or its time was up).
    """
    text = finished.stderr.strip() or finished.stdout.strip()
    if DISK_FULL.search(text):
        raise InfrastructureError(f"the disk is full: {_tail(text)}")
    if finished.ended == "timeout":
        raise InfrastructureError(f"uv did not end within {finished.seconds:.0f} s: {_tail(text)}")
    if finished.status < 0 or finished.ended == "stop":
        raise InfrastructureError(f"uv was killed (exit status {finished.status}) after {finished.seconds:.1f} s")
    reason = _reason(" ".join(text.split()), stage)
    # What a build backend prints explains it best, and comes last; a resolution is explained by its first lines.
    words = message(text)
    return Unavailable(
        "build" if reason is Reason.BUILD else stage,
        reason,
        words[-SHORT:] if reason is Reason.BUILD else words[:SHORT],
    )


def _reason(text: str, stage: str) -> Reason:
    for reason, signs in SIGNS:
        if re.search(signs, text):
            return reason
    if "No solution found" in text:
        if "depend on" in text or "depends on" in text or not WITHOUT_RELEASE.search(text):
            # "there is no version of X" is then one half of the conflict, unless it is X itself that was asked for.
            asked = re.search(r"there (?:is|are) no versions? of (\S+?)(?: and|,)? ?(?:and )?you require \1", text)
            return Reason.NO_SUCH_VERSION if asked else Reason.CONFLICT
        return Reason.NO_SUCH_VERSION
    return Reason.BUILD if stage == "build" else Reason.UV


def message(text: str) -> str:
    """uv's words from its ``error:`` on, one line a cause, without its tree of indents and its progress."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if re.match(r"\s*(error:|× )", line)), 0)
    kept = []
    for line in lines[first:]:
        words = re.sub(r"^\s*(error|cause|×|╰─▶|├─▶|│)\s*:?\s*", "", line).strip()
        if words and words != "No solution found when resolving dependencies":
            kept.append(words)
    return "\n".join(kept)


def _tail(text: str) -> str:
    return " ".join(message(text).split())[-300:]
