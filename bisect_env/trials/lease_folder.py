"""The folder that GPU leases lie in: files that several users lock, opened so that none of them can be tricked.

Several users: the folder is world-writable and sticky like ``/tmp`` itself, its files have mode 0666 whatever the
umask. Nothing in it is trusted: a file is opened by name inside the opened folder, never through a symbolic link, and
is used only when it is a regular file with a single name. Somebody who wants to can still hold a lease for ever, as
they can compute on the GPU without asking.

Containers: each usually has a ``/run/lock`` and ``/tmp`` of its own, so that leases do not reach from one into another.
Mount one folder of the host into all of them and name it in ``BISECT_ENV_LEASES``. Without that only the look at who
computes on the GPU (:func:`bisect_env.trials.gpu.foreign_processes`) protects against the other container.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import stat
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bisect_env.errors import InfrastructureError

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""O_NONBLOCK: somebody may have put a FIFO there, whose opening would wait for ever."""


def shared_folder() -> Path:
    """The folder of the leases: ``BISECT_ENV_LEASES``, else ``bisect-env`` in the first place open to every user.

    The place is chosen by its mode, not by what this user may do, so that root and everybody else agree on it.
    TMPDIR is left aside, because it is one's own.

    Raises:
        InfrastructureError: there is no such place.
    """
    if given := os.environ.get("BISECT_ENV_LEASES"):
        return Path(given)
    for place in (Path("/run/lock"), Path("/dev/shm"), Path("/tmp")):  # noqa: S108 - opened as the docstring says
        with suppress(OSError):
            mode = place.stat().st_mode
            if stat.S_ISDIR(mode) and mode & 0o1777 == 0o1777:
                return place / "bisect-env"
    raise InfrastructureError(
        "neither /run/lock nor /dev/shm nor /tmp is open to all users, so GPU leases have no place: "
        "name a folder for them in BISECT_ENV_LEASES, the same for all users"
    )


class LeaseFolder:
    """An opened folder of lock files. Closing it keeps the locks that were taken through it.

    Raises:
        InfrastructureError: the folder cannot be made or used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with suppress(FileExistsError):
                path.mkdir()
                path.chmod(0o1777)
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._unusable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)

    def _unusable(self, error: OSError | str) -> InfrastructureError:
        return InfrastructureError(
            f"{self.path}: GPU leases cannot be kept here ({error}). The folder has to be a real one that every user "
            "of the GPUs may write to (mode 1777); name another in BISECT_ENV_LEASES, the same for all users"
        )

    def names(self) -> list[str]:
        """Names of the files, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - by descriptor, which pathlib cannot

    def try_lock(self, name: str) -> int | None:
        """A descriptor that holds the file's lock until it is closed, or None when somebody else has it."""
        while True:
            fd = self._open(name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A cleaner of old files may have removed it between the two calls; the lock would guard nothing.
                named = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_ino == os.fstat(fd).st_ino
            except BlockingIOError:
                os.close(fd)
                return None
            except FileNotFoundError:
                named = False
            except BaseException:
                os.close(fd)
                raise
            if named:
                return fd
            os.close(fd)

    def _open(self, name: str) -> int:
        """Open a file, made when missing, for writing if its mode lets us: a lock needs no more than reading."""
        refused: OSError | str = "no permission"
        for _ in range(50):
            for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
                try:
                    # Creation stands apart: with fs.protected_regular, O_CREAT on another user's file is refused.
                    fd = os.open(name, flags | _FLAGS, 0o666, dir_fd=self.fd)
                except (FileNotFoundError, FileExistsError, PermissionError) as error:
                    refused = error
                    continue
                except OSError as error:
                    raise self._unusable(error) from error
                if flags & os.O_CREAT:
                    os.fchmod(fd, 0o666)
                status = os.fstat(fd)
                if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
                    return fd
                os.close(fd)
                raise self._unusable(f"{name} is not a plain file of its own")
            time.sleep(0.01)  # Its maker has not set its mode yet.
        raise self._unusable(refused)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there and ours to remove: the sticky folder keeps other users' files."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.fd)

    def read(self, name: str) -> tuple[dict[str, Any], float]:
        """What the file's last user wrote into it, and when (unix time); empty when it is not readable as that."""
        with suppress(OSError, ValueError):
            fd = self._open(name)
            try:
                content = json.loads(os.pread(fd, 1 << 16, 0))
                return (content if isinstance(content, dict) else {}), os.fstat(fd).st_mtime
            finally:
                os.close(fd)
        return {}, 0.0


def write(fd: int, content: dict[str, Any]) -> None:
    """Write ``content`` and who we are into a locked file, for others' messages.

    Raises:
        OSError: no space, or the file was opened for reading only.
    """
    content = {**content, "pid": os.getpid(), "user": _user(), "at": time.strftime("%Y-%m-%d %H:%M:%S")}
    data = json.dumps(content).encode()
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A container may run under a number without a name.
        return f"user {os.getuid()}"
