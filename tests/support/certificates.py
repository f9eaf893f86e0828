"""A certificate authority of the test's own, so that a server on loopback can stand in for a host with TLS."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Impostor:
    """What a server needs to pass for ``host``, and the file that makes a client believe it."""

    context: ssl.SSLContext
    authority: Path


def impostor(folder: Path, host: str) -> Impostor:
    """Makes a certificate for ``host``. Skips the test where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder.mkdir(parents=True, exist_ok=True)
    request = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch"]
    (folder / "names").write_text(f"subjectAltName=DNS:{host}\nbasicConstraints=CA:FALSE\n")
    for command in (
        [*request, "-x509", "-days", "2", "-subj", "/CN=tests", "-keyout", "ca.key", "-out", "ca.pem"],
        [*request, "-subj", f"/CN={host}", "-keyout", "host.key", "-out", "host.csr"],
        [
            *("openssl", "x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "2", "-extfile", "names", "-out", "host.pem"),
        ],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "host.pem", folder / "host.key")
    return Impostor(context, folder / "ca.pem")
