"""A collection of libraries, no two of which have a function of the same name. Names of functions are alike in any
case; names of libraries are not."""

from __future__ import annotations

from collections.abc import Iterable

from rlite_pubsub.engine.functions.library import (
    ENGINE,
    Function,
    FunctionError,
    Library,
    Register,
    check_name,
    read_metadata,
)
from rlite_pubsub.protocol.errors import c_string


class Shelf:
    """In the order in which they came."""

    def __init__(self, libraries: Iterable[Library] = ()) -> None:
        self.libraries: dict[bytes, Library] = {}
        self._functions: dict[bytes, Function] = {}
        for library in libraries:
            self._put(library)

    def copy(self) -> Shelf:
        return Shelf(self.libraries.values())

    def function(self, name: bytes) -> Function | None:
        return self._functions.get(name.lower())

    @property
    def functions(self) -> int:
        """How many there are."""
        return sum(len(library.functions) for library in self.libraries.values())

    def create(self, code: bytes, register: Register, *, replace: bool = False) -> Library:
        """Have a library of this code. Raises FunctionError, and has what it had."""
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

    def join(self, others: Shelf, *, replace: bool) -> None:
        """Have these, too. Raises FunctionError, and has what it had."""
        replaced = [self.libraries[name] for name in others.libraries if name in self.libraries]
        if replaced and not replace:
            raise FunctionError(b"Library %b already exists" % replaced[0].name)
        self._check_functions(others._functions.values(), replaced)
        for library in replaced:
            self.remove(library.name)
        for library in others.libraries.values():
            self._put(library)

    def remove(self, name: bytes) -> bool:
        """Whether there was such a library."""
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
        """Raises FunctionError if a library that stays has one of these names."""
        leaving = {function.name.lower() for library in going for function in library.functions.values()}
        for function in functions:
            key = function.name.lower()
            if key in self._functions and key not in leaving:
                raise FunctionError(b"Function %b already exists" % c_string(function.name))
