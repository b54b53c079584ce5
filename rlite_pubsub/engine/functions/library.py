"""Libraries of functions, and their metadata in the first line of their code.

    #!lua name=LIBRARY
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from rlite_pubsub.engine.scripts.cache import Flags, Program
from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.errors import c_string

ENGINE: Final = b"LUA"
"""Redis's name for its only engine; it is not case-sensitive."""

_NAME: Final = re.compile(rb"[a-zA-Z0-9_]+")
_BAD_NAME: Final = (
    b"Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
)


class FunctionError(Exception):
    """A library is not valid: `text` says why, as redis-server does, without its code word."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


class Function(Program):
    """A function that a library has registered."""

    __slots__ = ("description",)

    def __init__(self, name: bytes, description: bytes | None, flags: Flags, called: Any) -> None:
        super().__init__(name, flags, called, is_eval=False)
        self.description = description


class Library(NamedTuple):
    name: bytes
    code: bytes
    """The whole code, as it was given."""
    functions: Mapping[bytes, Function]


Register = Callable[[bytes], Mapping[bytes, Function]]
"""Runs the code after the first line, and returns the functions that it registers. Raises FunctionError."""


def check_name(name: bytes) -> None:
    """Check the name of a library or of a function. Raises FunctionError."""
    if _NAME.fullmatch(name) is None:
        raise FunctionError(_BAD_NAME)


class Metadata(NamedTuple):
    """The metadata in the first line."""

    engine: bytes
    name: bytes
    body: bytes
    """The code from the end of that line on, so that line numbers count from the first line."""


def read_metadata(code: bytes) -> Metadata:
    """Read the metadata, checking in Redis's order. Raises FunctionError."""
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


class Catalogue:
    """Libraries, in the order in which they were added; a function's name occurs only once. Names of functions are
    case-insensitive; names of libraries are not."""

    def __init__(self, libraries: Iterable[Library] = ()) -> None:
        self.libraries: dict[bytes, Library] = {}
        self._functions: dict[bytes, Function] = {}
        for library in libraries:
            self._put(library)

    def copy(self) -> Catalogue:
        return Catalogue(self.libraries.values())

    def function(self, name: bytes) -> Function | None:
        return self._functions.get(name.lower())

    @property
    def functions(self) -> int:
        """The number of functions."""
        return sum(len(library.functions) for library in self.libraries.values())

    def create(self, code: bytes, register: Register, *, replace: bool = False) -> Library:
        """Add a library of this code. Raises FunctionError, and leaves the catalogue as it was."""
        metadata = read_metadata(code)
        check_name(metadata.name)
        if metadata.engine.upper() != ENGINE:
            raise FunctionError(b"Engine '%b' not found" % metadata.engine)
        before = self.libraries.get(metadata.name)
        if before is not None and not replace:
            raise FunctionError(b"Library '%b' already exists" % metadata.name)
        functions = register(metadata.body)
        if not functions:
            raise FunctionError(b"No functions registered")
        library = Library(metadata.name, code, functions)
        self._check_functions(functions.values(), [before] if before is not None else [])
        if before is not None:
            self.remove(before.name)
        self._put(library)
        return library

    def join(self, others: Catalogue, *, replace: bool) -> None:
        """Add these libraries. Raises FunctionError, and leaves the catalogue as it was."""
        replaced = [self.libraries[name] for name in others.libraries if name in self.libraries]
        if replaced and not replace:
            raise FunctionError(b"Library %b already exists" % replaced[0].name)
        self._check_functions(others._functions.values(), replaced)
        for library in replaced:
            self.remove(library.name)
        for library in others.libraries.values():
            self._put(library)

    def remove(self, name: bytes) -> bool:
        """Remove a library; return whether it existed."""
        library = self.libraries.pop(name, None)
        if library is None:
            return False
        for function in library.functions.values():
            if self._functions.get(function.name.lower()) is function:
                del self._functions[function.name.lower()]
        return True

    def _put(self, library: Library) -> None:
        self.libraries[library.name] = library
        for function in library.functions.values():
            self._functions.setdefault(function.name.lower(), function)

    def _check_functions(self, functions: Iterable[Function], going: list[Library]) -> None:
        """Raise FunctionError if a library that stays has one of these names."""
        leaving = {function.name.lower() for library in going for function in library.functions.values()}
        for function in functions:
            key = function.name.lower()
            if key in self._functions and key not in leaving:
                raise FunctionError(b"Function %b already exists" % c_string(function.name))
