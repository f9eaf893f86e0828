"""The normalised identity of a failure: what stays of an exception's message when all that moves is taken out.

Two failures are the same fault when type, template and library module agree. The template must therefore be the same
in every process, on every host and for every thread, and still tell faults apart: ``recompile_limit (8)`` keeps its
number, since small numbers in a message are usually settings, and a chain such as ``LoweringException:
AttributeError: ...`` keeps its inner types.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bisect_env.trials.records import Signature

LONGEST = 300
"""Characters of a template. Longer messages differ by what they list, not by what went wrong."""
READ = 10_000
"""Characters of a headline that are looked at: the time that some rules take grows with its square."""

_NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|[su]\d+|<n>|<number>)"
_INTEGER = r"(?:-?\d+|[su]\d+|[su]<n>)"

_KEPT_NUMBER = re.compile(r"(?:limit|error|code|errno|status|exit)\W{1,3}$", re.IGNORECASE)


def _number(match: re.Match[str]) -> str:
    # `recompile_limit (128)` and `CUDA error 700` name a setting and a kind; any other large number is a size or an id.
    return match[0] if _KEPT_NUMBER.search(match.string[: match.start()]) else "<number>"


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE if ignore_case else 0), replacement)
    for pattern, replacement, ignore_case in (
        (r"\x1b\[[0-9;]*[A-Za-z]", "", False),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>", True),
        (r"\b0x[0-9a-f]+\b", "<address>", True),
        (r"https?://[^\s'\"<>)]+", "<url>", False),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "<time>", False),
        (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>", False),
        # Absolute paths with the line that may follow them, then relative ones that end like a file.
        (r"(?<![\w<>./~])~?(?:/[\w.@+~=%-]+)+/?(?::\d+)*", "<path>", False),
        (r"(?<![\w<>./])[\w.-]+(?:/[\w.-]+)+\.(?:py|so|json|cpp|h|cubin|ptx|lock|tmp|pkl)\b(?::\d+)*", "<path>", False),
        (r"\btmp\w{2,}", "<tmp>", False),
        (r"\b(cuda|cpu|xpu|gpu|hip|mps):\d+", r"\1:<n>", False),
        (r"\b(?:Dummy-\d+|Thread-\d+(?: \(\w+\))?|ThreadPoolExecutor-\d+_\d+|ForkPoolWorker-\d+)", "<thread>", False),
        (r"\b(?:thread|worker) (?:w?\d+|'[^']*')", "<thread>", True),
        (r"\bw\d+\b", "<thread>", False),
        (
            r"\b(line|column|char|position|index|offset|rank|device|gpu|pid|tid|process|step|iteration|attempt|port)"
            r"(?: id)?[ =:#]+\d+\b",
            r"\1 <n>",
            True,
        ),
        (r"\b(size of tensor [ab]|dimension|dim|size|numel|length|stride) \(?-?\d+\b\)?", r"\1 <n>", True),
        (r"\[\d+/\d+(?:_\d+)?\]", "<frame>", False),
        # Shapes: lists of numbers, tuples of two and more (so that "(8)" stays), and 128x64.
        (rf"\[\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*,?\s*\]", "<shape>", False),
        (rf"\(\s*{_INTEGER}\s*,(?:\s*{_INTEGER}\s*,)*\s*(?:{_INTEGER}\s*)?\)", "<shape>", False),
        (r"\b\d+(?:x\d+)+\b", "<shape>", False),
        (r"\b[0-9a-f]{16,}\b|\b[a-z2-7]{40,}\b", "<hash>", False),
        (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,15}\b", "<hash>", False),
        (r"\b\d+(?:\.\d+)? ?(?:bytes|[KMGT]i?B|B)\b", "<size>", False),
        (r"\b\d+(?:\.\d+)? ?(?:s|ms|us|µs|ns|seconds?|minutes?)\b", "<time>", False),
        (r"\b\d+(?:\.\d+)? ?%", "<share>", False),
        # The compilers' running names: arg12_1, primals_3, buf7, s0, triton_poi_fused_add_4, fw_graph0.
        (r"\b(arg|buf|tmp|inp|op|s|u|ks|ps|x|graph|fw_graph|bw_graph|subgraph)\d+(?:_\d+)*\b", r"\1<n>", False),
        (r"\b([A-Za-z_]\w*?_)\d+(?:_\d+)*\b", r"\1<n>", False),
        (r"(?<![\w.])-?\d+(?:\.\d+)?e[+-]?\d+(?![\w.])", "<number>", True),
        (r"(?<![\w.])-?\d+\.\d+(?![\w.])", "<number>", False),
        (r"(?<![\w.-])-?\d{3,}(?![\w]|\.\d)", _number, False),
        (r"\s+", " ", False),
    )
)

LEFT_OUT = "[...]"
"""The line that stands for the middle of a text that was too long."""
_FRAMES_FOLLOW = re.compile(r"^\s*(?:Previous )?Traceback\b.*:\s*$")


def announces_frames(line: str) -> bool:
    """Whether the frames of a traceback follow."""
    return _FRAMES_FOLLOW.match(line) is not None


def headline_of(message: str) -> str:
    """The line of a message that says what happened.

    That is the first one; a line that ends with a colon only announces the next (``backend='inductor' raised:``),
    and tracebacks inside a message (metrics_context begins with ``Previous Traceback:``) are passed over, also where
    their middle was left out.
    """
    said = ""
    in_frames = False
    for line in message.splitlines():
        if announces_frames(line) or (in_frames and line == LEFT_OUT):
            in_frames = True
            continue
        if not line.strip() or (in_frames and line[0].isspace()):
            continue
        in_frames = False
        said = f"{said} {line.strip()}" if said else line.strip()
        if not said.endswith(":"):
            break
    return said


def template_of(message: str) -> str:
    """The message with its volatile parts replaced. Idempotent: a template is its own template."""
    text = headline_of(message)[:READ]
    # A replacement can complete another pattern (a tuple of names becomes a shape), so until nothing changes.
    for _ in range(10):
        before = text
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        text = headline_of(text.strip()[:LONGEST].strip())
        if text == before:
            break
    return text


def signature_of(type_name: str, message: str, module: str = "") -> Signature:
    """The signature of an exception: ``type_name`` may be qualified, its module moves between versions and is cut."""
    short = type_name.rpartition(".")[2]
    template = template_of(message)
    # Some messages repeat the exception's own type ("RuntimeError: Metric(s) ..." inside a RuntimeError).
    template = template.removeprefix(f"{short}: ")
    return Signature(short, template, module)
