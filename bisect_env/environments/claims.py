"""One holder of a name among processes of several hosts that share a folder, over NFS too: no locks of the system.

A claim is a folder ``NAME.claim`` that holds the file ``beat-TOKEN`` of its holder, which rewrites it. It appears by
the renaming of a folder that has that file in it already, and a rename never takes the place of a folder with something
in it: so of any number of processes one has the name. A holder that no longer beats is dead; whoever sees that renames
the dead one's file away, by its token, which one process alone can do, and cannot do to a claim that has been taken
anew. The folder is empty then, and is free for the next rename.

No clock of another host and no time of a file is looked at: a holder is dead when what its file *says* has stayed the
same for long enough by the looker's own monotonic clock. Only the time between two of its looks counts that is as long
as it should be: a looker that was itself stopped, or that waited for its server, knows nothing of that time.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bisect_env.errors import InfrastructureError

SUFFIX = ".claim"
_BEAT = "beat-"
_BEATS = 8
"""Signs of life in the time after which a holder without any is dead."""
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass(frozen=True)
class Claims:
    """How names are claimed in a folder that hosts share."""

    staleness: float = 60.0
    """Seconds without a sign of life after which a holder is dead. NFS shows a change after up to a minute only where
    it is mounted with ``nocto``; else a file that is opened is looked up anew."""

    @property
    def pause(self) -> float:
        """Seconds between two signs of life, and at most between two looks at one."""
        return self.staleness / _BEATS


class Claim:
    """A name that this process holds, from :func:`taken`."""

    def __init__(self, folder: Path, token: str, claims: Claims) -> None:
        self._file, self._claims = folder / f"{_BEAT}{token}", claims
        self._over = threading.Event()
        self.lost = False
        """Whether somebody took it over: this process had been stopped for longer than the staleness."""
        self._thread = threading.Thread(target=self._beat, name="claim", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        count = 0
        while not self._over.wait(self._claims.pause):
            count += 1
            try:
                # Not made anew: it is gone when the claim is somebody else's. Opening it asks an NFS server.
                descriptor = os.open(self._file, os.O_WRONLY)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ESTALE):
                    self.lost = True
                    return
                continue  # A server that does not answer now may do so in time.
            with suppress(OSError):
                os.write(descriptor, b"%d" % count)
            with suppress(OSError):
                os.close(descriptor)

    def release(self) -> None:
        """Free the name. ``lost`` is certain from then on."""
        self._over.set()
        self._thread.join()
        try:
            self._file.unlink()
        except FileNotFoundError:
            self.lost = True
            return
        with suppress(OSError):
            self._file.parent.rmdir()  # Somebody else's by now, perhaps: then it is not empty.


class Watch:
    """What one process has seen of a claim that another one may hold."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._seen: tuple[str, bytes] | None = None
        self._looked, self._unchanged = time.monotonic(), 0.0

    def free(self, folder: Path) -> bool:
        """Look once: whether the name can be taken now. A holder that is dead has been removed then."""
        try:
            names = [name for name in os.listdir(folder) if name.startswith(_BEAT)]  # noqa: PTH208 - names alone
        except FileNotFoundError:
            return True
        except NotADirectoryError as error:
            raise _unusable(folder, error) from error
        except OSError:
            return self._changed(None)
        if not names:
            return True
        try:
            seen = names[0], (folder / names[0]).read_bytes()
        except OSError:
            return self._changed(None)  # Freed or taken over between the two looks, or no answer.
        if seen != self._seen:
            return self._changed(seen)
        now = time.monotonic()
        self._unchanged += min(now - self._looked, 2 * self._claims.pause)
        self._looked = now
        return self._unchanged >= self._claims.staleness and self._remove(folder, names[0])

    def _changed(self, seen: tuple[str, bytes] | None) -> bool:
        self._seen, self._looked, self._unchanged = seen, time.monotonic(), 0.0
        return False

    def _remove(self, folder: Path, name: str) -> bool:
        """Rename the dead one's file away; False when it was not there any more."""
        aside = folder.with_name(f".dead-{folder.stem}-{secrets.token_hex(8)}")
        try:
            (folder / name).rename(aside)
        except FileNotFoundError:
            return self._changed(None)
        aside.unlink(missing_ok=True)
        return True


@contextmanager
def taken(
    folder: Path, name: str, claims: Claims, timeout: float = 0.0, stop: threading.Event | None = None
) -> Iterator[Claim | None]:
    """Holds ``name`` in ``folder``, which exists, against everybody else; None when that was not possible in time.

    Args:
        timeout: seconds; 0 asks once, which never takes over from a dead holder.
        stop: ends the waiting.

    Raises:
        InfrastructureError: nothing can be made in the folder.
    """
    place, watch = folder / f"{name}{SUFFIX}", Watch(claims)
    deadline = time.monotonic() + timeout
    claim = None
    while not (watch.free(place) and (claim := _take(place, claims)) is not None):
        if time.monotonic() >= deadline or (stop is not None and stop.is_set()):
            yield None
            return
        _pause(min(1.0, claims.pause, max(0.0, deadline - time.monotonic())), stop)
    try:
        yield claim
    finally:
        claim.release()


def _take(place: Path, claims: Claims) -> Claim | None:
    """The claim, if nobody else was quicker."""
    token = secrets.token_hex(8)
    aside = place.with_name(f".new-{place.stem}-{token}")
    beat = f"{_BEAT}{token}"
    try:
        aside.mkdir()
        (aside / beat).write_bytes(b"0")
        try:
            aside.rename(place)
        except OSError as error:
            # A server that answered twice to one question tells the second time that there is nothing to rename.
            if (place / beat).exists():
                return Claim(place, token, claims)
            if error.errno not in _TAKEN:
                raise
            with suppress(OSError):
                place.rmdir()  # Some file systems replace not even an empty folder.
            return None
        _tidy(place)
        return Claim(place, token, claims)
    except FileNotFoundError as error:
        if not place.parent.is_dir():
            raise _unusable(place, error) from error
        return None  # Tidied away by the holder.
    except OSError as error:
        raise _unusable(place, error) from error
    finally:
        with suppress(OSError):
            (aside / beat).unlink(missing_ok=True)
            aside.rmdir()


def _tidy(place: Path) -> None:
    """Remove what killed processes left of their tries; one that lives just tries again."""
    for left in place.parent.glob(f".new-{place.stem}-*"):
        with suppress(OSError):
            # Away from its owner in one step: it must not come to the claim's place when it is half removed.
            left.rename(left.with_name(f".dead{left.name.removeprefix('.new')}"))
    for left in place.parent.glob(f".dead-{place.stem}-*"):
        with suppress(OSError):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()


def _unusable(place: Path, error: OSError) -> InfrastructureError:
    words = "may every host write there, and is the disk not full?"
    return InfrastructureError(f"{place}: an address cannot be claimed: {error.strerror}; {words}")


def _pause(seconds: float, stop: threading.Event | None) -> None:
    if stop is None:
        time.sleep(seconds)
    else:
        stop.wait(seconds)
