"""A marker in every place where credentials are kept, and a search for it in everything that is written or shown."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from bisect_env.cli.main import main

MARK = f"zq9geheim{os.getpid()}"
"""Another one in each process of the tests: they see each other's processes."""
USER, PASSWORD = "robot", f"{MARK}/index+pass"
"""What the index wants; encoded in a URL it looks otherwise."""
FORMS = (MARK.encode(), base64.b64encode(f"{USER}:{PASSWORD}".encode()))
"""What is looked for: the second is the header that a log of requests would hold."""
AUDIT = """\
import os, sys
def note(event, args):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, (repr(args[1] if len(args) > 1 else args) + "\\n").encode())
        os.close(log)
sys.addaudithook(note)
"""
"""For the command itself: every process that it starts, with its arguments, however short its life."""


def with_credentials(url: str) -> str:
    """The URL with user and password in it, as a user writes them."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{USER}:{quote(PASSWORD, safe='')}@{rest}"


def planted(folder: Path, index: str) -> dict[str, str]:
    """Files below ``folder`` and variables that hold it, as a user's home and shell do. Gives the variables."""
    home, audit = folder / "home", folder / "audit"
    for place in (home / ".config" / "uv", home / ".config" / "pip", audit):
        place.mkdir(parents=True)
    url = with_credentials(index)
    (home / ".netrc").write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    (home / ".netrc").chmod(0o600)
    (home / ".config" / "pip" / "pip.conf").write_text(f"[global]\nindex-url = {url}\nextra-index-url = {url}\n")
    (home / ".config" / "uv" / "uv.toml").write_text(f'[[index]]\nname = "corp"\nurl = "{url}"\ndefault = true\n')
    (audit / "sitecustomize.py").write_text(AUDIT.format(log=str(folder / "started")))
    return {
        "HOME": str(home),
        "PYTHONPATH": str(audit),
        "UV_INDEX_CORP_USERNAME": USER,
        "UV_INDEX_CORP_PASSWORD": PASSWORD,
        "UV_INDEX_URL": url,
        "UV_DEFAULT_INDEX": url,
        "UV_EXTRA_INDEX_URL": url,
        "UV_FIND_LINKS": url,
        "UV_PUBLISH_TOKEN": f"{MARK}-publish",
        "PIP_INDEX_URL": url,
        "PIP_EXTRA_INDEX_URL": url,
        "HF_TOKEN": f"hf_{MARK}",
        "HUGGING_FACE_HUB_TOKEN": f"hf_{MARK}",
        "WANDB_API_KEY": f"{MARK}-wandb",
        "AWS_SECRET_ACCESS_KEY": f"{MARK}-aws",
        "NCCL_CREDENTIAL_FILE": f"{MARK}-nccl",
        "TORCH_HUB_URL": f"https://{MARK}:x-oauth-basic@example.com/hub?token={MARK}",
        "HF_ENDPOINT": f"https://{USER}:{MARK}@example.com",
        "CUDA_NOTE": f"hf_{MARK} was here",
        "no_proxy": "127.0.0.1",
    }


@dataclass
class Watched:
    """What the commands showed and started."""

    said: list[str] = field(default_factory=list)
    """All that they printed."""
    seen: set[bytes] = field(default_factory=set)
    """Command lines that held the marker."""
    own: set[bytes] = field(default_factory=set)
    """Command lines that the tests started themselves: what a user types stands in them, and in each fork of them."""

    def titles(self) -> set[bytes]:
        """Command lines that held the marker, of all other processes."""
        return self.seen - self.own

    def here(self, *args: str, codes: Sequence[int] = (0,)) -> None:
        """Run ``bisect-env ARGS`` in this process, where no other one matters."""
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as ended:
            main(list(args))
        self.said.append(said.getvalue())
        assert ended.value.code in codes, said.getvalue()

    def run(
        self, *args: str, cwd: Path, variables: Mapping[str, str], codes: Sequence[int] = (0,), **options: str
    ) -> str:
        """Run ``bisect-env ARGS``; what it printed, which is kept for the search."""
        command = [sys.executable, "-m", "bisect_env", *args]
        self.own.add(b"".join(os.fsencode(word) + b"\0" for word in command))
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said = process.communicate(options.get("given", ""), timeout=180)[0]
        finally:
            process.kill()
            process.wait()
        self.said.append(said)
        assert process.returncode in codes, said
        return said


@contextmanager
def watched() -> Iterator[Watched]:
    """Looks at the titles of all new processes of this machine many times a second."""
    found, ended = Watched(), threading.Event()
    before = set(os.listdir("/proc"))  # noqa: PTH208 - names are enough

    def look() -> None:
        while not ended.wait(0.02):
            for name in set(os.listdir("/proc")) - before:  # noqa: PTH208
                try:
                    with open(f"/proc/{name}/cmdline", "rb") as file:  # noqa: PTH123 - a Path takes longer than to read it
                        title = file.read()
                except OSError:
                    continue
                if any(form in title for form in FORMS):
                    found.seen.add(title)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def holding(folder: Path, apart: Sequence[Path] = ()) -> list[str]:
    """Files below the folder in which it stands, by bytes, names and members of archives; without those ``apart``."""
    found = []
    for path in sorted(folder.rglob("*")):
        if any(path == each or each in path.parents for each in apart):
            continue
        if MARK in path.name or (path.is_symlink() and MARK in str(path.readlink())):
            found.append(f"{path} (name)")
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            # The end of a wheel that was read in parts looks like a whole one.
            with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
                data += b"".join(archive.read(name) for name in archive.namelist())
            if any(form in data for form in FORMS):
                found.append(str(path))
    return found


def direct_url(site: Path, name: str, url: str) -> None:
    """Make an installed distribution say that it came from a URL with credentials in it."""
    (info,) = site.glob(f"{name}-*.dist-info")
    told = {"url": with_credentials(url), "vcs_info": {"vcs": "git", "commit_id": "c0ffee" * 6 + "c0ff"}}
    (info / "direct_url.json").write_text(json.dumps(told))
