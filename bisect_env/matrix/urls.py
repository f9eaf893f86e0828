"""Credentials in URLs: found, and kept out of everything that is shown, stored or hashed."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<userinfo>[^\s/?#@]*(?:@[^\s/?#@]*)*)@")
_QUERY = re.compile(
    r"(?P<name>[?&][^=&#\s]*(?:token|secret|password|passwd|auth|key|sig)[^=&#\s]*=)[^&#\s]+", re.IGNORECASE
)


def without_credentials(text: str) -> str:
    """``text`` with user names, passwords and tokens of the URLs in it replaced by ``***``."""
    return _QUERY.sub(r"\g<name>***", _USERINFO.sub(r"\g<scheme>***@", text))


def stripped(url: str) -> str:
    """``url`` as it would be without its credentials: what tells two sources apart when a token has changed."""
    return _QUERY.sub(r"\g<name>", _USERINFO.sub(r"\g<scheme>", url))


def has_credentials(text: str) -> bool:
    """True when a URL in ``text`` carries a secret. The bare user name of an ssh URL (``git@``) is none."""
    for match in _USERINFO.finditer(text):
        over_ssh = match["scheme"].lower().endswith("ssh://")
        if not over_ssh or ":" in match["userinfo"]:
            return True
    return _QUERY.search(text) is not None
