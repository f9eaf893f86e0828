"""The sections of a checked file that all cells share: requirements, index, reproducer, base, limits, variables."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bisect_env.matrix import shipped
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice, Limits, ReproducerChoice
from bisect_env.matrix.document import Document, Loc
from bisect_env.matrix.options import Option, read_options
from bisect_env.matrix.paths import existing, looks_like_path, looks_like_source, source_url, split
from bisect_env.matrix.problems import Unfit, one_of, shown
from bisect_env.matrix.schema import MatrixFile

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_PREFIX = "BISECT_ENV_"
_INDEX_SCHEMES = ("https://", "http://", "file://")


class Settings:
    """Reads the shared sections of one file. Every method raises BadInput with the place of what is unfit."""

    def __init__(self, document: Document, file: MatrixFile) -> None:
        self.document, self.file = document, file
        self.folder = document.source.absolute().parent

    def request(self, index: IndexChoice) -> EnvironmentRequest:
        """What all cells ask of their environments, before the levels of each are added."""
        build = {
            str(canonicalize_name(name)): tuple(
                self._requirement(("build_requirements", name, at), text) for at, text in enumerate(texts)
            )
            for name, texts in self.file.build_requirements.items()
        }
        lines = [self._requirement(("requirements", at), text) for at, text in enumerate(self.file.requirements)]
        return EnvironmentRequest(
            requirements=tuple(lines),
            index=index,
            as_of=self.file.as_of,
            base=self._base(),
            accept=tuple(sorted({str(canonicalize_name(name)) for name in self.file.accept})),
            build_requirements=tuple(sorted(build.items())),
        )

    def index(self, asks_for_cuda: bool) -> IndexChoice:
        """Where packages come from. Variants come from PyTorch's own indexes unless the file says otherwise."""
        section = self.file.index
        backend = section.torch_backend
        if asks_for_cuda and backend not in (None, "auto"):
            raise self.document.bad(
                ("index", "torch_backend"),
                f"torch-backend {backend} for every cell, while cells ask for CUDA variants",
                "torch-backend: auto, or no cuda in the cells",
            )
        if section.torch_fallback and backend != "cpu":
            wanted = "torch-backend: cpu beside it; a CUDA variant asked for is honoured or refused, never replaced"
            raise self.document.bad(("index", "torch_fallback"), "torch-fallback without torch-backend: cpu", wanted)
        if asks_for_cuda and "torch_backend" not in section.model_fields_set and not section.urls:
            backend = "auto"
        return IndexChoice(
            torch_backend=backend,
            urls=tuple(self._index_url(("index", "urls", at), url) for at, url in enumerate(section.urls)),
            find_links=tuple(
                self._links(("index", "find_links", at), url) for at, url in enumerate(section.find_links)
            ),
            offline=section.offline,
            torch_fallback=section.torch_fallback,
        )

    def reproducer(self, folder: Path) -> tuple[ReproducerChoice, Mapping[str, Option] | None]:
        """The reproducer, and its options; None for a command of the user's own."""
        section = self.file.reproducer
        if section.command:
            return self._command(), None
        if not section.name:
            wanted = "a shipped reproducer's name, or {command: [...], files: [...]}"
            raise self.document.bad(("reproducer",), "neither a name nor a command", wanted)
        for key in ("files", "fail_pattern", "skip_pattern"):
            if key in section.model_fields_set:
                found = f"{key.replace('_', '-')} for the shipped reproducer {section.name}"
                raise self.document.bad(("reproducer", key), found, "a command beside it, or the key left out")
        script = folder / f"{section.name.replace('-', '_')}.py"
        if Path(section.name).name != section.name or script not in folder.glob("*.py"):
            names = shipped.reproducers(folder)
            wanted = f"{one_of(names, section.name)}; or {{command: [...], files: [...]}}"
            raise self.document.bad(("reproducer",), f"no reproducer {shown(section.name)}", wanted)
        return ReproducerChoice(script.stem), read_options(script)

    def limits(self) -> Limits:
        """Bounds of the run."""
        given = {name: value for name, value in self.file.limits.model_dump().items() if value is not None}
        return dataclasses.replace(Limits(), **given)

    def variables(self) -> dict[str, str]:
        """Fixed variables of the trials."""
        for name in self.file.env:
            self.check_variable(("env", name), name)
        return dict(self.file.env)

    def check_variable(self, path: Loc, name: str) -> None:
        """Refuse a name that cannot be a variable of a trial."""
        if not _VARIABLE.fullmatch(name):
            raise self.document.bad(path, f"{shown(name)} as a variable", "letters, digits and _")
        if name.startswith(_OWN_PREFIX):
            raise self.document.bad(path, f"{shown(name)}", f"another name: {_OWN_PREFIX}* is how trials are run")

    def pass_env(self, own: Mapping[str, Loc]) -> tuple[str, ...]:
        """Variables of the parent that trials see; ``own`` are those that the file itself sets, and where."""
        for at, name in enumerate(self.file.pass_env):
            self.check_variable(("pass_env", at), name)
            if name in own:
                found = f"{name} is passed on, and set by this file too ({self.document.place(own[name])})"
                raise self.document.bad(("pass_env", at), found, "one of the two")
        return tuple(dict.fromkeys(self.file.pass_env))

    def _command(self) -> ReproducerChoice:
        section = self.file.reproducer
        words = section.command
        if not isinstance(self.document.data["reproducer"].get("command"), list):
            with self.document.at("reproducer", "command"):
                try:
                    words = shlex.split(words[0])
                except ValueError as error:
                    raise Unfit(f"{shown(words[0])}: {error}", "a list of words") from None
        if not words or not words[0]:
            raise self.document.bad(("reproducer", "command"), "an empty command", "for example [python, train.py]")
        files: dict[str, Path] = {}
        for at, text in enumerate(section.files):
            with self.document.at("reproducer", "files", at):
                path = existing(text, self.folder, "a file or folder that the command needs")
                if path.name in files:
                    wanted = "names that differ: all are copied into one folder"
                    raise Unfit(f"{shown(text)} and {shown(files[path.name])} have one name", wanted)
                files[path.name] = path
        for at, word in enumerate(words[1:], start=1):
            if word.endswith(".py") and not looks_like_path(word) and Path(word).parts[0] not in files:
                wanted = f"files: [{word}] beside it: trials run in a folder of their own, which holds only those"
                raise self.document.bad(("reproducer", "command", at), f"{shown(word)} is not among the files", wanted)
        script = next((word for word in words if word.endswith(".py")), words[0])
        return ReproducerChoice(
            name=section.name or Path(script).stem,
            command=tuple(words),
            files=tuple(files.values()),
            fail_pattern=section.fail_pattern,
            skip_pattern=section.skip_pattern,
        )

    def _requirement(self, path: Loc, text: str) -> str:
        """One PEP 508 line, its source absolute."""
        with self.document.at(*path):
            if looks_like_source(text):
                raise Unfit(f"{shown(text)} has no name", f"NAME @ {shown(text)[1:-1]}")
            try:
                requirement = Requirement(text)
            except InvalidRequirement as error:
                reason = str(error).splitlines()[0]
                wanted = (
                    "a requirement such as numpy, numpy>=2, NAME[extra]==1.0 or NAME @ git+https://HOST/PROJECT@REF"
                )
                raise Unfit(f"{shown(text)}: {shown(reason)[1:-1]}", wanted) from None
            if requirement.url:
                requirement.url = source_url(requirement.url, self.folder)
            return str(requirement)

    def _base(self) -> str | None:
        if self.file.base is None:
            return None
        with self.document.at("base"):
            # A bare word is a command, as in a shell: the host's own `python3`.
            command = None if "/" in self.file.base else shutil.which(self.file.base)
            if command is not None:
                return command
            path = existing(self.file.base, self.folder, "an interpreter, or a folder with bin/python in it")
            if path.is_dir():
                path = existing("bin/python", path, "a folder with bin/python in it, or an interpreter")
            return str(path)

    def _index_url(self, path: Loc, text: str) -> str:
        with self.document.at(*path):
            if looks_like_path(text):
                return existing(text, self.folder, "a folder that holds a simple index").as_uri()
            if not text.startswith(_INDEX_SCHEMES):
                raise Unfit(f"{shown(text)} is no index URL", "https://HOST/simple, or a folder such as ./simple")
            split(text)
            return text

    def _links(self, path: Loc, text: str) -> str:
        with self.document.at(*path):
            if text.startswith(_INDEX_SCHEMES):
                split(text)
                return text
            if "://" in text:
                raise Unfit(f"{shown(text)} is no page's URL", "https://..., or a folder with wheels such as ./wheels")
            return str(existing(text, self.folder, "a folder with wheels, or a page's URL"))
