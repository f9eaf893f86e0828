"""Credentials in URLs and in variables: found, and kept out of everything that is shown, stored or hashed."""

from __future__ import annotations

import re
from collections.abc import Mapping

_USERINFO = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<userinfo>[^\s/?#@]*(?:@[^\s/?#@]*)*)@")
QUERY = re.compile(
    r"""(?P<name>[?&][^=&#\s"'`\\]*(?:token|secret|password|passwd|auth|key|sig)[^=&#\s"'`\\]*=)[^&#\s"'`\\]+""",
    re.IGNORECASE,
)
"""Ends at quotes and backslashes, which a URL has encoded: what follows them belongs to the text around it."""
_VARIABLE = re.compile(
    r"TOKEN(?!IZER)|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY|AUTH(?!OR)", re.IGNORECASE
)
_SHORTEST = 4
"""Characters below which a value is not looked for: it could be part of any word."""


def without_credentials(text: str) -> str:
    """``text`` with user names, passwords and tokens of the URLs in it replaced by ``***``."""
    return QUERY.sub(r"\g<name>***", _USERINFO.sub(r"\g<scheme>***@", text))


def without_query_secrets(text: str) -> str:
    """``text`` with the tokens in the queries of its URLs replaced, the user names and passwords let be."""
    return QUERY.sub(r"\g<name>***", text)


def names_secret(name: str) -> bool:
    """True when a variable of this name is likely to hold a secret: ``HF_TOKEN``, ``UV_INDEX_CORP_PASSWORD``."""
    return _VARIABLE.search(name) is not None


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be kept of the output of a process that had these variables, the longest first."""
    found = {value for name, value in variables.items() if names_secret(name) and len(value) >= _SHORTEST}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def stripped(url: str) -> str:
    """``url`` as it would be without its credentials: what tells two sources apart when a token has changed."""
    return QUERY.sub(r"\g<name>", _USERINFO.sub(r"\g<scheme>", url))


def has_credentials(text: str) -> bool:
    """True when a URL in ``text`` carries a secret. The bare user name of an ssh URL (``git@``) is none."""
    for match in _USERINFO.finditer(text):
        over_ssh = match["scheme"].lower().endswith("ssh://")
        if not over_ssh or ":" in match["userinfo"]:
            return True
    return QUERY.search(text) is not None
