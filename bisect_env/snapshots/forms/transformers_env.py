"""``transformers env``, and what grew out of it: ``accelerate env``, ``diffusers-cli env``, ``trl env``."""

from __future__ import annotations

import re

from bisect_env.errors import BadInput
from bisect_env.snapshots import pasted, several
from bisect_env.snapshots.pieces import VERSION, Gathering, cuda_of, require_some, unread, versioned
from bisect_env.snapshots.records import Snapshot, Target, Unread

NAME = "transformers env"
OPENING = re.compile(r"[>\s]*(?:[-*]\s+)?(?:`transformers` version|transformers version):")
MARKS = re.compile(r"version:\s*\S+")

_ITEM = re.compile(r"(?:[-*•]\s+)?(?P<key>[^\s:-][^:]{0,60}?):(?:\s+(?P<value>\S.*))?")
_VERSION = re.compile(r"`?(?:🤗 )?(?P<name>[A-Za-z][\w-]*)`? version(?: \([^()]*\?\))?")
_VALUE = re.compile(rf"(?P<version>(?=\d){VERSION})(?: \([^()]*\))?")
_ABSENT = re.compile(r"(?:not installed|not found|n/?a|none)(?: \([^()]*\))?", re.IGNORECASE)
_NAMES = {"pytorch": "torch"}
_NO_PACKAGE = frozenset({"python", "cann", "cuda", "rocm"})
_GPU = re.compile(r"(?:GPU|XPU|HPU|NPU) type|Accelerator")
_USELESS = re.compile(
    r"Using .*|Running on .*|.*bash location|System RAM|PyTorch [A-Z]+ available|PyTorch accelerator|"
    r"`?Accelerate`? (?:default )?config.*|.*default config.*|Jax\w* version",
    re.IGNORECASE,
)
_CONFIG = re.compile(r"`?Accelerate`? (?:default )?configs?", re.IGNORECASE)
_OWN = re.compile(
    r"(?m)^[> \t]*[-*] (`\w+` version|🤗 \w+ version|Huggingface_hub version|PyTorch version \(\S+\?\)"
    r"|Using .+ in script\?):"
)
_CHATTER = re.compile(r"Copy-and-paste the text below|</?\w+>|#+ |(?:Name|INFO|W\d{4}|\d{4}-\d\d-\d\d)\b")
_WANTED = "what `transformers env` prints, whole"


def recognise(text: str) -> float:
    """By its first item, or by three items that only such a report has."""
    if any(OPENING.match(line) for line in text[:400_000].split("\n")):
        return 1.0
    found = len(set(_OWN.findall(text[:400_000])))
    return 0.95 if found > 1 else 0.6 if found else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot, which knows of a handful of packages. Raises BadInput: several reports, or nothing in it."""
    several.only(text, OPENING, origin, MARKS)
    gathering, missed, in_config = Gathering(origin), list[Unread](), False
    told: dict[str, str] = {}
    gpus: list[str] = []
    for number, line in pasted.unquoted(text):
        match = _ITEM.fullmatch(line) if len(line) <= pasted.LONGEST_LINE else None
        key, value = (match["key"].strip(), (match["value"] or "").strip()) if match else ("", "")
        version = _VERSION.fullmatch(key)
        name = version["name"].lower().replace("_", "-") if version else ""
        if key in ("Platform", "Python version"):
            if told.setdefault(key, value) != value:
                raise BadInput(origin, f"line {number}", f"{key}: {value}, and {told[key]} before"[:200], "one report")
            in_config = False
        elif name and name not in _NO_PACKAGE:
            in_config = False
            found = _VALUE.fullmatch(value)
            if found is not None:
                gathering.add(versioned(_NAMES.get(name, name), found["version"]), f"line {number}")
            elif not _ABSENT.fullmatch(value):
                missed.append(unread(number, line, "no version"))
        elif _GPU.fullmatch(key):
            gpus.append(value)
        elif _USELESS.fullmatch(key):
            in_config = _CONFIG.fullmatch(key) is not None
        elif not in_config and not _CHATTER.match(line) and name not in _NO_PACKAGE - {""}:
            missed.append(unread(number, line, "no line of this report"))
    distributions = gathering.distributions()
    return require_some(
        Snapshot(
            origin,
            NAME,
            distributions,
            python=told.get("Python version") or None,
            platform=told.get("Platform") or None,
            cuda=cuda_of(distributions),
            gpus=tuple(gpus),
            missing=(
                "It lists a handful of packages: all others, and the driver, are not in it.",
                "Of several GPUs it names the first only; environment variables and compile cache are not in it.",
            ),
            unread=tuple(missed),
            partial=True,
        ),
        _WANTED,
    )
