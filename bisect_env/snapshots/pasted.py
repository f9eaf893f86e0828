"""Text as people paste it: encodings, terminals' colours, and lines that belong to the terminal and not to the form."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from bisect_env.errors import BadInput

LARGEST = 8_000_000
"""Bytes above which nothing is read: the largest locks of big workspaces have some 4 MB."""
MOST_LINES = 250_000
LONGEST_LINE = 4_000
"""Characters of a line above which no form written line by line takes it for one of its own."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # Before UTF-16, whose mark it begins with.
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_INVISIBLE = str.maketrans({"\u200b": None, "\ufeff": None, "\u2060": None, "\u00a0": " ", "\u202f": " "})
"""What web pages put between words."""
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f]")
_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)[^\n]*$")
_PROMPT = re.compile(
    r"""(?x) ^(?:\([^()\s]+\)\s*)? (?:
      [$%❯»] (?:\s|$)                                          # $ pip freeze
    | [\w.-]+@[\w.-]+ [^=]{0,200}? [$%❯»] (?:\s|$)            # (venv) user@host:~/project$ pip freeze
    | [\w.-]+@[\w.-]+:[^\s\#]{0,200} \# (?:\s|$)             # root@3f2a:/workspace# pip list
    | \[ [\w.-]+@ [^\[\]]{0,200} \] [$\#] (?:\s|$)          # [user@host project]$ pip list
    | (?:PS\s)? [A-Za-z]:\\ [^<>|]{0,200} > | (?:PS\s) [/~] [^<>|]{0,200} > (?:\s|$)
    | >>>(?:\s|$) | In\s\[\d*\]: | !\s?(?:pip|uv|python)\d?\s    # a notebook's
    | (?:\+\s)? (?:uv\s)? pip[\d.]*\s(?:freeze|list)\b
    | (?:\+\s)? (?:python[\d.]*\s-m\s(?:pip|torch) | (?:conda|mamba)\s(?:list|env))\b
    )"""
)
_WORDS = re.compile(
    r"""(?x) ^(?:
      WARNING: | DEPRECATION: | ERROR: | warning: | \[notice\] | notice: | \[\s*WARN
    | You\sare\susing\spip\sversion | You\sshould\sconsider\supgrading | A\snew\srelease\sof\spip
    | Using\sPython\s\S+\senvironment | <frozen\s | \S*/site-packages/\S+:\d+:\s\w*Warning:
    )"""
)
_QUOTED = re.compile(r"^(?:\s*>)+")
_USING = re.compile(r"(?m)^Using Python (\d+\.\d+\.\d+\w*) environment")


def decode(data: bytes, origin: str) -> str:
    """The text of a file, in any Unicode encoding that says which it is, and in UTF-8 or UTF-16 that does not.

    Line ends are ``\\n``; a terminal's colours, invisible characters and Markdown's code fences are gone, the lines'
    numbers are those of the file. ``data`` need not hold more than ``LARGEST + 1`` bytes of a longer one.

    Raises BadInput: too large, or no text.
    """
    if len(data) > LARGEST:
        found = f"more than {LARGEST:,} bytes"
        raise BadInput(origin, "", found, "a list of what is installed, or a lock file: those have at most a few MB")
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), None) or _unmarked(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"line {line}" if encoding == "utf-8" else f"byte {error.start}"
        found = f"bytes that are no {encoding.upper()}"
        raise BadInput(origin, place, found, "text saved as UTF-8 (or as UTF-16 with its mark)") from None
    return tidy(text, origin)


def tidy(text: str, origin: str) -> str:
    """As :func:`decode`, of text that is decoded already."""
    if len(text) > LARGEST:
        return decode(text.encode("utf-8", "surrogatepass"), origin)  # Says so.
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE)
    text = _FENCE.sub("", _COLOURS.sub("", text))
    binary = _BINARY.search(text)
    if binary is not None:
        line = text.count("\n", 0, binary.start()) + 1
        raise BadInput(
            origin,
            f"line {line}",
            f"the control character {binary[0]!r}",
            "a text file, and not an archive, a program or a picture",
        )
    if text.count("\n") > MOST_LINES:
        found = f"more than {MOST_LINES:,} lines"
        raise BadInput(origin, "", found, "a list of what is installed, or a lock file: those have fewer")
    return text


def _unmarked(data: bytes) -> str:
    """The encoding of text without a mark: every other byte of ASCII in UTF-16 is zero, no byte of UTF-8 is."""
    head = data[:1000]
    if len(head) > 1 and len(data) % 2 == 0:
        even, odd = head[0::2], head[1::2]
        if odd.count(0) > 0.9 * len(odd) and 0 not in even:
            return "utf-16-le"
        if even.count(0) > 0.9 * len(even) and 0 not in odd:
            return "utf-16-be"
    return "utf-8"


def is_chatter(line: str) -> bool:
    """True for a line that a terminal, a notebook or an installer wrote beside the form: prompts and warnings."""
    line = line.strip()[:LONGEST_LINE]
    return _PROMPT.match(line) is not None or _WORDS.match(line) is not None


def told_python(text: str) -> str | None:
    """The version that uv names in the words it writes before its lists, None without them."""
    match = _USING.search(text)
    return None if match is None else match[1]


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Each line that is neither blank nor chatter, with its number from 1, without blanks at its end."""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip()
        if line and not line.isspace() and not is_chatter(line):
            yield number, line


def unquoted(text: str) -> Iterator[tuple[int, str]]:
    """As :func:`numbered`, without a quotation's marks (``> ``) and without indentation: reports are posted in both."""
    for number, line in numbered(text):
        bare = _QUOTED.sub("", line).strip()
        if bare and (bare == line or not is_chatter(bare)):
            yield number, bare


def sample(text: str, most: int = 400) -> list[str]:
    """The first lines as :func:`numbered` gives them, without comments: enough to recognise a form by."""
    lines: list[str] = []
    for _, line in numbered(text[: most * 1000]):
        if not line.lstrip().startswith("#"):
            lines.append(line)
            if len(lines) == most:
                break
    return lines
