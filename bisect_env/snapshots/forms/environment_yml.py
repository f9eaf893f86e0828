"""``environment.yml`` of conda, exported (``conda env export``) or written by hand, with its ``- pip:`` block."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from bisect_env.environments.requirements import exact
from bisect_env.errors import BadInput
from bisect_env.matrix.urls import without_credentials
from bisect_env.snapshots.forms.conda_list import NOT_TOLD, Row, variant_of
from bisect_env.snapshots.pieces import NAME as NAME_PATTERN
from bisect_env.snapshots.pieces import Gathering, cuda_of, pinned, require_some, shortened, sourced, unread, versioned
from bisect_env.snapshots.records import Distribution, Snapshot, Target, Unread
from bisect_env.snapshots.variables import public

NAME = "conda's environment.yml"
_LARGEST = 1_000_000
_WANTED = "what `conda env export` prints, or `conda list`"
_SPEC = re.compile(
    rf"(?:[\w./:-]+::)?(?P<name>_?{NAME_PATTERN})(?:\s*(?P<operator>==?)\s*|\s+(?=\d))"
    r"(?P<version>\d[^\s=<>!,|*\[\]]*)(?P<star>\.?\*)?(?:\s*=\s*|\s+)?(?P<build>(?<=[=\s])[^\s=,|*\[\]]+)?"
)
_DEPENDENCIES = re.compile(r"(?m)^[ \t]*dependencies[ \t]*:[ \t]*(?:#.*)?$")
_OPTION = re.compile(r"--?(?:(?:extra-)?index-url|i|find-links|f|trusted-host|pre|no-index|prefer-binary|no-binary)\b")


def recognise(text: str) -> float:
    """By its key ``dependencies`` with a list under it; TOML has other signs."""
    match = _DEPENDENCIES.search(text)
    if match is None or re.search(r"(?m)^\[\[?[\w.-]+\]\]?\s*$", text):
        return 0.0
    for line in text[match.end() : match.end() + 10_000].split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return 1.0 if line.lstrip().startswith("- ") else 0.0
    return 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot. Raises BadInput: no YAML, no list of dependencies, two versions of one."""
    top = _mapping(text, origin)
    dependencies = top.get("dependencies")
    if not isinstance(dependencies, yaml.SequenceNode):
        raise BadInput(origin, "dependencies", "no list", _WANTED)
    reading = _Reading(origin, host, exported="prefix" in top or _has_builds(dependencies))
    for node in dependencies.value:
        reading.take(node)
    distributions = reading.gathering.distributions()
    variables = _variables(top.get("variables"))
    return require_some(
        Snapshot(
            origin,
            NAME,
            distributions,
            python=reading.python,
            cuda=cuda_of(distributions) or reading.variant,
            variables=variables or None,
            missing=(NOT_TOLD if not variables else "GPUs, driver, other variables and compile cache are not in it.",),
            unread=tuple(reading.unread),
            ranges=tuple(reading.ranges),
            partial=not reading.exported,
            covered=tuple(name for name, _ in variables) if variables else ("*",),
        ),
        _WANTED,
    )


class _Reading:
    """What has been read so far."""

    def __init__(self, origin: str, host: Target, exported: bool) -> None:
        self.gathering = Gathering(origin)
        self.unread: list[Unread] = []
        self.ranges: list[str] = []
        self.python: str | None = None
        self.variant: str | None = None
        self.exported = exported
        """All versions are exact: an export writes ``numpy=1.26.4`` for what a person would mean 1.26.4.* by."""
        self._host = host

    def take(self, node: yaml.Node) -> None:
        line = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            self._conda(str(node.value).strip(), line)
            return
        blocks = node.value if isinstance(node, yaml.MappingNode) else []
        if len(blocks) == 1 and blocks[0][0].value == "pip" and isinstance(blocks[0][1], yaml.SequenceNode):
            for item in blocks[0][1].value:
                self._pip(item)
            return
        self.unread.append(unread(line, str(node.value)[:200], "neither a requirement of conda's nor a `pip:` block"))

    def _conda(self, text: str, line: int) -> None:
        match = _SPEC.fullmatch(text)
        if match is None:
            bare = re.fullmatch(rf"(?:[\w./:-]+::)?{NAME_PATTERN}", text) is not None
            why = "no version" if bare else "a range of conda's, or nothing that conda knows"
            self.unread.append(unread(line, text, f"{why}: `conda list` tells what is installed"))
            return
        name, version, build = match["name"], match["version"], match["build"] or ""
        fuzzy = match["star"] is not None or not (build or match["operator"] == "==" or self.exported)
        if name == "python":
            # A part of a version is what a record of Python may hold; the lowest part that is told counts.
            self.python = version
        elif fuzzy:
            why = "one `=` is a range: `conda list` or `conda env export` tells the version"
            self.unread.append(unread(line, text, why))
        else:
            self.gathering.add(Row(name, version, build).distribution(), f"line {line}")
            if name in ("pytorch", "libtorch"):
                self.variant = self.variant or variant_of(build)

    def _pip(self, node: yaml.Node) -> None:
        line = node.start_mark.line + 1
        text = str(node.value).strip() if isinstance(node, yaml.ScalarNode) else ""
        if _OPTION.match(text):
            return  # Where it came from, perhaps with credentials: not what is installed.
        found = pinned(text) or sourced(text) or self._requirement(text, line)
        if isinstance(found, Distribution):
            self.gathering.add(found, f"line {line}")
        elif isinstance(found, Unread):
            self.unread.append(found)

    def _requirement(self, text: str, line: int) -> Distribution | Unread | None:
        """With extras, markers or a range; None when the marker leaves it out, or when it went to the ranges."""
        try:
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate(self._host.environment()):
                return None
        except (InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName, ValueError):
            return unread(line, text, "no requirement that pip would read here, or one that is in another file")
        version = exact(requirement)
        if version is None:
            self.ranges.append(without_credentials(text))
            return None
        return versioned(requirement.name, version)


def _mapping(text: str, origin: str) -> dict[str, yaml.Node]:
    if len(text) > _LARGEST:
        raise BadInput(origin, "", f"{len(text):,} characters", f"at most {_LARGEST:,}: {_WANTED}")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        raise BadInput(origin, place, shortened(error.problem or "no YAML"), _WANTED) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(origin, "", f"no YAML: {shortened(str(error))}", _WANTED) from None
    if not isinstance(node, yaml.MappingNode):
        raise BadInput(origin, "", "no mapping", _WANTED)
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if str(key.value) in found:
            raise BadInput(origin, f"line {key.start_mark.line + 1}", f"a second `{key.value}`"[:80], "one environment")
        found[str(key.value)] = value
    return found


def _has_builds(dependencies: yaml.SequenceNode) -> bool:
    texts = [str(node.value).strip() for node in dependencies.value if isinstance(node, yaml.ScalarNode)]
    return any(match is not None and match["build"] for match in map(_SPEC.fullmatch, texts))


def _variables(node: yaml.Node | None) -> tuple[tuple[str, str], ...]:
    """What conda sets when the environment is activated."""
    return public(_pairs(node))


def _pairs(node: yaml.Node | None) -> Iterator[tuple[str, str]]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode):
                yield name.value, value.value
