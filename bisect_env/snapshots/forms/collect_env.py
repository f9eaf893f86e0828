"""``python -m torch.utils.collect_env``, of any age; the reader serves vLLM's script too, which grew out of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bisect_env.errors import BadInput
from bisect_env.snapshots import pasted, several
from bisect_env.snapshots.forms.conda_list import Row, table_row, variant_of
from bisect_env.snapshots.pieces import Gathering, cuda_of, pinned, require_some, unread, versioned
from bisect_env.snapshots.records import Distribution, Snapshot, Target, Unread
from bisect_env.snapshots.variables import public

NAME = "torch's collect_env"
OPENING = re.compile(r"[>\s]*PyTorch version:")
MARKS = re.compile(r"PyTorch version\s*: *\S+")
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"

_UNKNOWN = frozenset(
    {"", "n/a", "na", "none", "could not collect", "no cuda", "no xpu", "no relevant packages", "unknown"}
)
_FIELD = re.compile(r"([A-Za-z][\w ./()?-]{1,50}?)\s*:(?:\s+(\S.{0,300})|\s*)")
_ENTRY = re.compile(r"\[(pip|pip3|conda)\]\s+(\S.*)")
_GPU = re.compile(r"GPU (\d+):\s*(.+?)(?:\s+\(UUID:[^)]*\))?")
_MIG = re.compile(r"MIG (\S+)\s+Device\s+\d+:.*")
_RULE = re.compile(r"[=─-]{6,}")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)")
_PYTHON = re.compile(r"\d+\.\d+(?:\.\d+)?[\w+]*")
_FIELDS = frozenset(
    """PyTorch version|Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch|XPU used to build PyTorch|OS
    GCC version|Clang version|CMake version|Libc version|Python version|Python platform|Is CUDA available
    CUDA runtime version|CUDA_MODULE_LOADING set to|GPU models and configuration|Nvidia driver version|cuDNN version
    Is XPU available|XPU runtime version|Intel GPU models|Intel GPU driver version|Intel GPU models onboard
    Intel GPU models detected|HIP runtime version|MIOpen runtime version|Is XNNPACK available|Caching allocator config
    ROCM Version|vLLM Version|Neuron SDK Version|oneAPI compiler version|SYCL compiler build|oneCCL version
    Intel Graphics Compiler (IGC)|Intel GMM (libigdgmm)|Level Zero loader version|Level Zero driver version
    vLLM XPU kernels version|LLVM version""".replace("\n", "|")
    .replace("    ", "")
    .split("|")
)
_HEADINGS = {
    "cpu": "cpu",
    "cpu info": "cpu",
    "versions of relevant libraries": "libraries",
    "vllm build flags": "flags",
    "gpu topology": "topology",
    "environment variables": "variables",
}
_PROSE = frozenset({"cpu", "topology", "flags"})
"""Sections whose lines say nothing that is compared."""
_OTHER_TITLES = frozenset(
    {"system info", "pytorch info", "python environment", "cuda / gpu info", "intel xpu / gpu info", "vllm info"}
)
_CHATTER = re.compile(
    r"Collecting environment information|Probably one of the following|<frozen|</?\w+ ?/?>|\*\*\* Detected"
    r"|--(?:Compile time|Runtime)--|(?:INFO|WARNING|DEBUG) \d\d-\d\d|uv is set$"
)
_PATH = re.compile(r"(?:/|[A-Za-z]:\\)\S.*")
_WANTED = "what `python -m torch.utils.collect_env` prints, whole"


@dataclass
class Report:
    """What such a script says, piece by piece."""

    fields: dict[str, str] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    pip: list[tuple[int, Distribution]] = field(default_factory=list)
    conda: list[tuple[int, Row]] = field(default_factory=list)
    variables: list[tuple[str, str]] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    sections: set[str] = field(default_factory=set)

    def known(self, name: str) -> str | None:
        """A field's value, None where the script could not tell it."""
        value = self.fields.get(name, "")
        return None if value.lower() in _UNKNOWN else value


def recognise(text: str) -> float:
    """By two of its fields, in its spelling of them."""
    head = text[:400_000]
    fields = sum(
        f"\n{name}:" in f"\n{re.sub(r'(?m)^[> ]+', '', head)}" for name in ("PyTorch version", "Is debug build")
    )
    return {0: 0.0, 1: 0.6, 2: 0.95}[fields] if "PyTorch version:" in head else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot, which knows of packages around torch only. Raises BadInput: several reports, or nothing in it."""
    several.only(text, OPENING, origin, MARKS)
    report = parse(text, origin)
    allocator = report.known("Caching allocator config")
    told = "Caching allocator config" in report.fields
    only = f"but for {ALLOCATOR}, and compile cache" if told else "and compile cache"
    return snapshot(
        report,
        origin,
        NAME,
        missing=[
            "It lists torch, numpy, triton, NVIDIA's libraries and a few tools: transformers and others are not in it.",
            f"Environment variables {only} are not in it.",
        ],
        variables=public([(ALLOCATOR, allocator)] if allocator else []) if told else None,
        covered=(ALLOCATOR,),
        wanted=_WANTED,
    )


def snapshot(
    report: Report,
    origin: str,
    form: str,
    missing: list[str],
    variables: tuple[tuple[str, str], ...] | None,
    covered: tuple[str, ...],
    wanted: str,
) -> Snapshot:
    """The report as a snapshot; ``missing``, ``variables`` and ``covered`` are as the script is known to be.

    Raises BadInput: it lists two versions of one distribution, or nothing at all.
    """
    distributions = _distributions(report, origin)
    if "libraries" not in report.sections:
        missing = [*missing, "It ends before its list of packages: only what its fields name is known."]
    elif not report.pip and not report.conda:
        missing = [*missing, "The script could not collect the packages: only what its fields name is known."]
    python = _PYTHON.search(report.known("Python version") or "")
    return require_some(
        Snapshot(
            origin,
            form,
            distributions,
            python=python[0] if python else None,
            platform=report.known("OS") or report.known("Python platform"),
            cuda=_variant(report) or cuda_of(distributions),
            driver=report.known("Nvidia driver version"),
            gpus=tuple(report.gpus),
            variables=variables,
            missing=tuple(missing),
            unread=tuple(report.unread),
            partial=True,
            covered=covered if variables is not None else ("*",),
        ),
        wanted,
    )


def parse(text: str, origin: str) -> Report:
    """Reads line by line; what belongs to no part of the report is listed as unread.

    Raises BadInput: a field is there twice with different values.
    """
    report, section, last = Report(), "", ""
    for number, line in pasted.unquoted(text):
        title = line.rstrip(":").strip().lower()
        assigned = _ASSIGNED.fullmatch(line)
        if len(line) > pasted.LONGEST_LINE:
            report.unread.append(unread(number, line, "longer than any line of this report"))
        elif title in _HEADINGS or title in _OTHER_TITLES:
            section = _HEADINGS.get(title, "")
            report.sections.add(section)
        elif _RULE.fullmatch(line) or _CHATTER.match(line):
            continue
        elif entry := _ENTRY.fullmatch(line):
            section = "libraries"
            report.sections.add(section)
            _package(report, number, entry[1], entry[2])
        elif assigned is not None and section in ("variables", "topology", "libraries"):
            report.variables.append((assigned[1], assigned[2]))
        elif section in _PROSE and not _is_field(line):
            continue
        elif gpu := _GPU.fullmatch(line):
            report.gpus.append(gpu[2])
        elif mig := _MIG.fullmatch(line):
            report.gpus[-1:] = [f"{report.gpus[-1]} (MIG {mig[1]})" if report.gpus else f"MIG {mig[1]}"]
        elif _is_field(line):
            last = _field(report, number, line, origin)
            section = "" if section in _PROSE else section
        elif last != "cuDNN version" or not _PATH.fullmatch(line):
            report.unread.append(unread(number, line, "no line of this report"))
    return report


def _is_field(line: str) -> bool:
    match = _FIELD.fullmatch(line)
    return match is not None and match[1].strip() in _FIELDS


def _field(report: Report, number: int, line: str, origin: str) -> str:
    match = _FIELD.fullmatch(line)
    assert match is not None
    name, value = match[1].strip(), (match[2] or "").strip()
    before = report.fields.setdefault(name, value)
    if before != value:
        raise BadInput(origin, f"line {number}", f"{name}: {value}, and {before} before"[:200], "one report")
    if name == "GPU models and configuration" and value.lower() not in _UNKNOWN:
        gpu = _GPU.fullmatch(value)
        report.gpus.append(gpu[2] if gpu else value)
    return name


def _package(report: Report, number: int, manager: str, text: str) -> None:
    if text.strip().lower() in _UNKNOWN:
        return
    if manager != "conda":
        found = pinned(text)
        if found is not None:
            report.pip.append((number, found))
            return
    else:
        row = table_row(text)
        if row is not None:
            report.conda.append((number, row))
            return
    report.unread.append(unread(number, text, "neither a version nor a row of conda's list"))


def _distributions(report: Report, origin: str) -> tuple[Distribution, ...]:
    """What pip lists and what conda lists; each in its own words where they disagree, else once."""
    gathering = Gathering(origin)
    for number, found in report.pip:
        gathering.add(found, f"line {number}")
    listed = {found.name: found.version for _, found in report.pip}
    for number, row in report.conda:
        found = row.distribution()
        if found.manager == "conda" or found.name not in listed:
            gathering.add(found, f"line {number}")
        elif listed[found.name] != found.version:
            # `conda list` may be of another environment than the Python that was asked.
            note = "in conda's list, as installed by pip"
            gathering.add(Distribution(found.name, found.version, "", "conda", note), f"line {number}")
    for name, version in (("torch", report.known("PyTorch version")), ("vllm", report.known("vLLM Version"))):
        known = name in listed or any(row.distribution().name == name for _, row in report.conda)
        if version is not None and version[0].isdecimal() and not known:
            # As the module says, which has the label of its build where the installed metadata may have none.
            gathering.add(versioned(name, version.split()[0]), f"{name}'s own version")
    return gathering.distributions()


def _variant(report: Report) -> str | None:
    cuda, rocm = report.known("CUDA used to build PyTorch"), report.known("ROCM used to build PyTorch")
    if cuda is not None and re.fullmatch(r"\d+\.\d+(?:\.\d+)*", cuda):
        return "cu" + "".join(cuda.split(".")[:2])
    if rocm is not None:
        return "rocm" + ".".join(rocm.split(".")[:2])
    for _, row in report.conda:
        if row.name == "pytorch" and (variant := variant_of(row.build)):
            return variant
    # "None" is what a build without CUDA says of itself; "Could not collect" is what the script says.
    return "cpu" if report.fields.get("CUDA used to build PyTorch") == "None" else None
