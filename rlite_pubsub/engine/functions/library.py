"""A library of functions, and what the first line of its code says of it.

    #!lua name=LIBRARY
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from rlite_pubsub.engine.scripts.cache import Flags
from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.errors import c_string

ENGINE: Final = b"LUA"
"""As Redis calls the only one that it has; whoever names it may write it in any case."""

_NAME: Final = re.compile(rb"[a-zA-Z0-9_]+")
_BAD_NAME: Final = (
    b"Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
)


class FunctionError(Exception):
    """A library that can't be: `text` says why, as redis-server does, without its code word."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


class Function(NamedTuple):
    """One that a library has registered."""

    name: bytes
    description: bytes | None
    flags: Flags
    callback: Any
    """The sandbox's."""


class Library(NamedTuple):
    name: bytes
    code: bytes
    """All of it, as it was given."""
    functions: Mapping[bytes, Function]


Register = Callable[[bytes], Mapping[bytes, Function]]
"""Runs the code behind the first line, and has the functions that it registers. Raises FunctionError."""


def check_name(name: bytes) -> None:
    """Raises FunctionError for what is no name of a library or of a function."""
    if _NAME.fullmatch(name) is None:
        raise FunctionError(_BAD_NAME)


class Metadata(NamedTuple):
    """What the first line says."""

    engine: bytes
    name: bytes
    body: bytes
    """The code from the end of that line on, so that its lines have the numbers that they have in all of it."""


def read_metadata(code: bytes) -> Metadata:
    """Raises FunctionError, in Redis's order."""
    if not code.startswith(b"#!"):
        raise FunctionError(b"Missing library metadata")
    end = c_string(code).find(b"\n")
    words = inline.split(code[:end]) if end >= 0 else None
    if not words:
        raise FunctionError(b"Invalid library metadata")
    name: bytes | None = None
    for word in words[1:]:
        if word[:5].lower() != b"name=":
            raise FunctionError(b"Invalid metadata value given: " + c_string(word))
        if name is not None:
            raise FunctionError(b"Invalid metadata value, name argument was given multiple times")
        name = word[5:]
    if name is None:
        raise FunctionError(b"Library name was not given")
    return Metadata(words[0][2:], name, code[end:])
