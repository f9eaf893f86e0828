"""README.txt and SHA256SUMS of a bundle: for whoever meets the folder without this tool."""

from __future__ import annotations

import hashlib
import shlex

from bisect_env.bundles.manifest import encode
from bisect_env.bundles.records import MANIFEST, PARTS, PROJECT, SUFFIX, TOOL, Manifest

TEXT = """\
A bundle of bisect-env {version}: the matrix {matrix}, for Python {python} on {platform}.

{count} parts of at most {largest} bytes in {parts}/. They may be carried over one at a time, in any order; in that of
SHA256SUMS they complete the first cells of the matrix first. The name of a part is the SHA-256 of its content, and
`sha256sum -c SHA256SUMS` checks all (with --ignore-missing what has arrived). manifest.json, {tool}/ and {project}/
go first.

On the target, which needs Python {python} and nothing else:

1. the tool:        python{python} -m venv venv && venv/bin/pip install --no-index --find-links {tool} 'bisect-env[nox]'
2. what is here:    venv/bin/bisect-env unbundle . --into unbundled
                    (again whenever more parts have arrived; those taken in may be removed)
3. the matrix:      cd {project} && ../venv/bin/bisect-env matrix {matrix} --bundle ../unbundled

   or with nox:     cd {project} && ../venv/bin/nox -s matrix -- {matrix} --bundle ../unbundled
                    (step 1 has installed all that the noxfile needs, so that nox makes no environment of its own)
"""


def readme(manifest: Manifest) -> str:
    """The text of README.txt."""
    sizes = [size for _, size in manifest.part_bytes]
    return TEXT.format(
        version=manifest.tool_version,
        matrix=shlex.quote(manifest.matrix),
        python=manifest.target.python,
        platform=manifest.target.platform,
        count=len(sizes),
        largest=max(sizes, default=0),
        parts=PARTS,
        tool=TOOL,
        project=PROJECT,
    )


def sums(manifest: Manifest) -> str:
    """The text of SHA256SUMS, for ``sha256sum -c`` in the bundle's folder."""
    own = hashlib.sha256(encode(manifest).encode()).hexdigest()
    lines = [(own, MANIFEST)]
    lines += [(part, f"{PARTS}/{part}{SUFFIX}") for part, _ in manifest.part_bytes]
    lines += [(sha256, f"{TOOL}/{name}") for name, sha256 in manifest.tool]
    return "".join(f"{sha256}  {path}\n" for sha256, path in lines)
