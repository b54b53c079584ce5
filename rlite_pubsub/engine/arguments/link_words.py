"""The words of a link, in LINK CREATE and in a configuration file: `name url [CHANNELS pattern ...] [TOPICS pattern
...] [DIRECTION in|out|both] [PREFIX prefix] [FROM id]`.

A link is kept as JSON, with its names and patterns as text of one character for each byte.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from rlite_pubsub import measures

SCHEMES: Final = (
    "redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel",
)  # fmt: skip
_LISTS: Final = {"CHANNELS": "channels", "TOPICS": "topics"}
_SINGLE: Final = {"DIRECTION": "direction", "PREFIX": "prefix", "FROM": "since"}
_DIRECTIONS: Final = ("in", "out", "both")
_NAME: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class BadLink(ValueError):
    """A link is not valid; the message has nothing that may be secret."""


def read_link(words: list[bytes]) -> tuple[str, dict[str, Any]]:
    """Return (name, the link as it is kept). Raises BadLink."""
    name, url, *rest = (word.decode("latin-1") for word in words)
    if not _NAME.fullmatch(name):
        raise BadLink("the name of a link has up to 64 letters, digits and . : _ -")
    found: dict[str, Any] = {"channels": [], "topics": [], "direction": "", "prefix": "", "since": "0"}
    while rest:
        option = rest.pop(0).upper()
        if option in _LISTS:
            patterns = found[_LISTS[option]]
            while rest and rest[0].upper() not in (*_LISTS, *_SINGLE):
                patterns.append(rest.pop(0))
            if not patterns:
                raise BadLink(f"{option} needs a pattern")
        elif option in _SINGLE and rest:
            found[_SINGLE[option]] = rest.pop(0)
        else:
            raise BadLink("syntax error")
    _check(found)
    if not (found["channels"] or found["topics"]):
        found["channels"] = ["*"]
    return name, found | {"name": name, "url": url, "shown": shown(url), "is_paused": False}


def _check(found: dict[str, Any]) -> None:
    direction = found["direction"] = found["direction"].lower() or ("out" if found["topics"] else "both")
    if direction not in _DIRECTIONS:
        raise BadLink("DIRECTION is in, out or both")
    start = measures.start_of(found["since"], time.time_ns() // 1_000_000)
    if start is None or start == measures.LAST:
        raise BadLink(f"FROM is {measures.STARTS}")
    found["since"] = "0" if start == measures.BEGINNING else start


def shown(url: str) -> str:
    """Return the URL without its secrets: the password and the values of its options. Raises BadLink."""
    try:
        parts = urlsplit(url)
        options = [name for name, _ in parse_qsl(parts.query)]
    except ValueError as failure:
        raise BadLink("the URL can't be read") from failure
    if parts.scheme not in SCHEMES:
        raise BadLink(f"a link leads to one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if parts.scheme != "unix" and not parts.netloc.rpartition("@")[2]:
        raise BadLink("the URL names no host")
    user, at, hosts = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    query = "&".join(f"{option}=..." for option in options)
    return urlunsplit((parts.scheme, f"{name}{at if name else ''}{hosts}", parts.path, query, ""))
