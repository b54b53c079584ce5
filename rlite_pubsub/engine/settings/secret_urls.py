"""URLs that have a password, a secret key or a token in them: what of them may be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_IN_QUERY = re.compile(r"([?&](?:access_key|secret_key|session_token|password)=)([^&#]*)", re.IGNORECASE)
_BEFORE_HOST = re.compile(r"(?<=://)([^/@:]*):([^/?#]*)@")


def without_password(url: str) -> str:
    """Return a URL that may be shown."""
    return _IN_QUERY.sub(r"\1***", _BEFORE_HOST.sub(r"\1:***@", url))


def passwords_in(words: Iterable[str]) -> list[str]:
    """Return the passwords in the URLs among these words."""
    matches = (match for word in words for pattern in (_BEFORE_HOST, _IN_QUERY) for match in pattern.finditer(word))
    return [match[2] for match in matches]
