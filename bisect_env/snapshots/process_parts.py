"""A running process: the variables it was started with, the interpreter it runs, and the libraries it has loaded.

Runs on the captured host (:mod:`capture`): standard library alone, Python 3.8 or later, nothing written. All of it is
read below ``/proc``; what that does not show is said, and nothing is put in its place.
"""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = re.compile(
    r"lib(?:torch\w*|c10\w*|cuda|cudart|cudnn\w*|cublas\w*|cufft\w*|cusparse\w*|cusolver\w*|curand|cupti|nccl\w*|nvrtc"
    r"|nvJitLink|nvshmem\w*|amdhip\w*|rccl|gomp|iomp5|omp|mkl_\w+)(?:-[0-9a-f]+)?\.so(?:\.[\d.]+)?"
)
"""Names of the files that torch computes with."""
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]?")
_GONE = " (deleted)"
_PACKAGES = re.compile(r"(/.+)/lib(?:64)?/python\d[\d.]*/(?:site|dist)-packages/")


class Unseen(Exception):
    """There is nothing to capture: what was found, and what would be right (empty: the caller's general advice)."""

    def __init__(self, found: str, wanted: str) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(found)


@dataclass(frozen=True)
class Process:
    """What is known of it."""

    interpreter: str
    """Path: started again, it is the same Python with the same packages."""
    checked: bool
    """The process runs this very file; else only its command line says so."""
    variables: dict[str, str] | None
    """As it was started with; None: they cannot be read."""
    libraries: list[list[str]] | None
    """Name and path of each that torch computes with, by name; None: they cannot be read."""
    owner: str
    folder: str | None
    """Its working folder; None: it cannot be entered."""
    root: str
    """Stands before a path to see it as the process does."""
    remarks: list[str]
    """Sentences: what could not be seen, and why."""


def process(pid: int) -> Process:
    """The process of this number.

    Raises:
        Unseen: there is none, it is no Python, it runs in a container, or nothing tells its interpreter.
    """
    place = Path("/proc", str(pid))
    if not Path("/proc/self/status").exists():
        raise Unseen("there is no /proc: processes can be looked at on Linux only", "--python or --activate instead")
    try:
        owner = _user(place.stat().st_uid)
    except OSError:
        wanted = "the number of a process that runs there (pgrep -af python); in a container its number there"
        raise Unseen(f"there is no process {pid}, or it is hidden from {_user(os.getuid())}", wanted) from None
    remarks: list[str] = []
    variables = _variables(place, pid, owner, remarks)
    maps = _maps(place, pid, owner, remarks)
    interpreter, checked = _interpreter(place, pid, owner, variables or {}, maps or [], remarks)
    remarks.append("Distributions are those on disk now: what was installed since the process began, it does not have.")
    libraries = None if maps is None else _libraries(maps, remarks)
    folder = str(place / "cwd") if os.access(str(place / "cwd") + "/", os.X_OK) else None
    return Process(interpreter, checked, variables, libraries, owner, folder, str(place / "root"), remarks)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid_{number}"


def _why(error: OSError, owner: str) -> str:
    """Why something below ``/proc/PID`` cannot be read."""
    if not isinstance(error, PermissionError):
        return "it has ended, or has begun to"
    allowed = owner if owner == "root" else f"{owner} or root"
    return f"it belongs to {owner}, and {_user(os.getuid())} may not look into it (run this as {allowed})"


def _variables(place: Path, pid: int, owner: str, remarks: list[str]) -> dict[str, str] | None:
    try:
        text = (place / "environ").read_bytes()
    except OSError as error:
        remarks.append(f"The variables and the compile cache of process {pid} are not known: {_why(error, owner)}.")
        return None
    entries = [entry.partition("=") for entry in os.fsdecode(text).split("\0") if entry]
    # A process that gives itself a title (Ray, vLLM, PyTorch's workers) writes it over its variables.
    if (text and not entries) or not all(name and equals for name, equals, _ in entries):
        remarks.append(f"The variables of process {pid} are not known: it has written its title over them.")
        return None
    remarks.append("Variables are those that the process was started with: what it has set for itself is not seen.")
    return {name: value for name, _, value in entries}


def _maps(place: Path, pid: int, owner: str, remarks: list[str]) -> list[str] | None:
    """The files that are mapped, each once, in the order of their names."""
    try:
        lines = os.fsdecode((place / "maps").read_bytes()).splitlines()
    except OSError as error:
        remarks.append(f"The libraries that process {pid} has loaded are not known: {_why(error, owner)}.")
        return None
    fields = (line.split(None, 5) for line in lines)
    return sorted({words[5] for words in fields if len(words) == 6 and words[5].startswith("/")})


def _libraries(maps: list[str], remarks: list[str]) -> list[list[str]]:
    found, gone = [], []
    for path in maps:
        plain = path[: -len(_GONE)] if path.endswith(_GONE) else path
        name = plain.rpartition("/")[2]
        if LIBRARIES.fullmatch(name):
            found.append([name, plain])
            gone += [name] if plain != path else []
    if gone:
        remarks.append(
            f"{', '.join(gone)}: replaced or removed on disk since the process began, so that what is installed now is "
            "not what it runs."
        )
    return sorted(found)


def _interpreter(
    place: Path, pid: int, owner: str, given: dict[str, str], maps: list[str], remarks: list[str]
) -> tuple[str, bool]:
    """The path by which its packages are found, and whether the process runs this very file.

    A virtual environment's interpreter is a link: the file that runs does not tell which of several environments it is.
    So the name by which it was started counts, then the environment whose modules it has loaded, then the active one.
    """
    words = _words(place)
    named = _named(words[0] if words else "", given, place)
    try:
        running = os.readlink(str(place / "exe"))  # noqa: PTH115 - Path.readlink came with Python 3.9
    except OSError as error:
        if named and _PYTHON.fullmatch(named[0].rpartition("/")[2]) and os.access(named[0], os.X_OK):
            remarks.append(f"The interpreter is the one that the command line names, unchecked: {_why(error, owner)}.")
            return named[0], False
        raise Unseen(f"process {pid} does not show which interpreter it runs: {_why(error, owner)}", "") from None
    if running.endswith(_GONE):
        running = running[: -len(_GONE)]
        if not os.access(running, os.X_OK):
            found = f"the interpreter of process {pid}, {running}, was removed from the disk since it began"
            raise Unseen(found, "--python with the one that it should be compared as; or the process started anew")
        remarks.append(f"The interpreter {running} was replaced on disk since the process began.")
        same = False
    elif not _same_file(place / "exe", running):
        found = f"process {pid} runs {running} of another file system: it is in a container"
        raise Unseen(
            found, "the same inside it, with its number there: -- docker exec -i NAME, -- kubectl exec -i POD --"
        )
    else:
        same = True
    if not _PYTHON.fullmatch(running.rpartition("/")[2]):
        found = f"process {pid} is {running.rpartition('/')[2]}, no Python{_children(pid)}"
        raise Unseen(found, "the number of the Python process itself (pgrep -af python)")
    loaded = sorted({match[1] for match in map(_PACKAGES.match, maps) if match})
    active = [given[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if given.get(name)]
    candidates = [*named, *(f"{prefix}/bin/python" for prefix in (*loaded, *active))]
    real = os.path.realpath(running)
    found = next((path for path in candidates if os.path.realpath(path) == real and os.access(path, os.X_OK)), running)
    return found, same


def _words(place: Path) -> list[str]:
    try:
        return os.fsdecode((place / "cmdline").read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def _named(word: str, given: dict[str, str], place: Path) -> list[str]:
    """Where a shell that had these variables has found the command."""
    if word.startswith("/"):
        return [word]
    if "/" in word:
        # The folder may have been changed since: that of the variable is the one it was started in.
        return [os.path.normpath(f"{folder}/{word}") for folder in (given.get("PWD"), _folder(place)) if folder]
    found = [f"{folder}/{word}" for folder in given.get("PATH", "").split(":") if word and folder.startswith("/")]
    return [path for path in found if os.access(path, os.X_OK)][:1]


def _folder(place: Path) -> str:
    try:
        return os.readlink(str(place / "cwd"))  # noqa: PTH115
    except OSError:
        return ""


def _same_file(link: Path, path: str) -> bool:
    try:
        one, other = link.stat(), Path(path).stat()
    except OSError:
        return False
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _children(pid: int) -> str:
    """The Python processes below it; only their numbers, since a command line may hold anything."""
    parents: dict[int, int] = {}
    pythons = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text(errors="replace").partition("(")[2].rpartition(") ")
            parents[int(folder.name)] = int(rest.split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if _PYTHON.fullmatch(name):
            pythons.add(int(folder.name))
    below = [number for number in sorted(pythons) if _descends(number, pid, parents)]
    return f"; below it {', '.join(map(str, below[:20]))} {'is' if len(below) == 1 else 'are'}" if below else ""


def _descends(number: int, pid: int, parents: dict[int, int]) -> bool:
    for _ in range(len(parents)):
        number = parents.get(number, 0)
        if number in (0, pid):
            break
    return number == pid
