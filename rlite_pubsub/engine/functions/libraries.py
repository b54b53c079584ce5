"""The libraries of functions of the store: all of its processes have the same, and they stay when none runs.

A process runs a library's code when somebody first asks for functions, and again when another process has changed it. A
change of a library is written to the store before it is answered, and replicas are told of it in the same commit. It
builds on the present libraries: if another process was quicker, the change is tried again on the new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rlite_pubsub.engine.functions.library import Catalogue, Function, FunctionError, Register
from rlite_pubsub.storage.commons import function_libraries
from rlite_pubsub.storage.environment import Environment, Txn

log = logging.getLogger("rlite_pubsub")

T = TypeVar("T")

TellReplicas = Callable[[Txn, list[list[bytes]]], None]
"""Has replicas told of what this transaction changes, in the requests that they are to execute."""

_RETRIES = 100
"""How often another process may be quicker; each time it has changed something."""


class Libraries:
    """The libraries as one process knows them."""

    def __init__(self, data: Environment, tell_replicas: TellReplicas) -> None:
        self._data = data
        self._tell_replicas = tell_replicas
        self._register: Register = _without_lua
        self._register_again: Register = _without_lua
        self.functions: Any = None
        """functions.py's, once somebody has asked for functions: with them comes Lua."""
        self._tell: Callable[[int], None] = _nobody
        self._catalogue: Catalogue | None = None  # None: not read yet
        self._version = -1

    def register_by(self, register: Register, register_again: Register) -> None:
        """`register` runs the code of a new library; `register_again` that of one from the store, which has all the
        time it needs."""
        self._register, self._register_again = register, register_again

    def tell_by(self, tell: Callable[[int], None]) -> None:
        """Call `tell`, with the version of the commons, to notify other processes."""
        self._tell = tell

    def follow(self, version: int) -> None:
        """Note the version of the store's libraries."""
        if version != self._version:
            self._catalogue = None

    def catalogue(self) -> Catalogue:
        """Return the libraries, for reading only. Raises StoreError."""
        if self._catalogue is None:
            self._version, codes = self._data.read(_read)
            self._catalogue = self._loaded(codes)
        return self._catalogue

    def function(self, name: bytes) -> Function | None:
        """Return the function of this name. Raises StoreError."""
        catalogue = self._catalogue
        return (catalogue if catalogue is not None else self.catalogue()).function(name)

    @property
    def known(self) -> Catalogue:
        """The libraries as last read: none if nobody has asked for functions."""
        return self._catalogue if self._catalogue is not None else _NONE

    def load(self, code: bytes, *, replace: bool) -> bytes:
        """Add a library of this code; return its name. Raises FunctionError, StoreError."""

        def work(catalogue: Catalogue) -> tuple[bytes, dict[bytes, bytes | None]]:
            library = catalogue.create(code, self._register, replace=replace)
            return library.name, {library.name: code}

        return self._change(work)

    def delete(self, name: bytes) -> bool:
        """Delete a library; return whether it existed. Raises StoreError."""
        return self._change(lambda catalogue: (True, {name: None}) if catalogue.remove(name) else (False, {}))

    def flush(self) -> None:
        """Remove all libraries. Raises StoreError."""
        self._put(Catalogue(), {}, only=True)

    def check(self, codes: Iterable[bytes]) -> Catalogue:
        """Return libraries of these codes; nothing is changed. Raises FunctionError."""
        checked = Catalogue()
        for code in codes:
            checked.create(code, self._register_again)
        return checked

    def restore(self, codes: Iterable[bytes], *, replace: bool = False, only: bool = False) -> None:
        """Add libraries of these codes; with `only`, remove all others. Raises FunctionError, StoreError."""
        restored = self.check(codes)
        packed = {library.name: library.code for library in restored.libraries.values()}
        if only:
            self._put(restored, packed, only=True)
            return

        def work(catalogue: Catalogue) -> tuple[None, Mapping[bytes, bytes | None]]:
            catalogue.join(restored, replace=replace)
            return None, packed

        self._change(work)

    def _change(self, work: Callable[[Catalogue], tuple[T, Mapping[bytes, bytes | None]]]) -> T:
        """Let `work` change a copy of the catalogue and return (result, changes for the store). Returns the result."""
        for _ in range(_RETRIES):
            self.follow(self._data.read(function_libraries.version))
            catalogue = self.catalogue().copy()
            result, changes = work(catalogue)
            if not changes or self._put(catalogue, changes):
                return result
        raise FunctionError(b"Other processes keep changing the libraries")

    def _put(self, catalogue: Catalogue, changes: Mapping[bytes, bytes | None], *, only: bool = False) -> bool:
        """Write changes to the store. Returns False if another process was quicker: nothing has changed."""
        known = self._version
        told = [[b"FUNCTION", b"FLUSH"]] if only else []
        for name, code in changes.items():
            told.append([b"FUNCTION", b"DELETE", name] if code is None else [b"FUNCTION", b"LOAD", b"REPLACE", code])

        def write(txn: Txn) -> tuple[int, int] | None:
            if not only and function_libraries.version(txn) != known:
                return None
            self._tell_replicas(txn, told)
            return function_libraries.put(txn, changes, only=only)

        is_freeing = only or not any(code is not None for code in changes.values())
        versions = self._data.write(write, freeing=is_freeing)
        if versions is None:
            self._catalogue = None
            return False
        self._version, common = versions
        self._catalogue = catalogue
        self._tell(common)
        return True

    def _loaded(self, codes: list[bytes]) -> Catalogue:
        catalogue = Catalogue()
        for code in codes:
            try:
                catalogue.create(code, self._register_again)
            except FunctionError as failure:
                log.warning("A library of the store can't be loaded: %s", failure)
        return catalogue


_NONE = Catalogue()


def _without_lua(body: bytes) -> Mapping[bytes, Function]:
    raise FunctionError(b"No Lua runs here")


def _nobody(version: int) -> None:
    """Do nothing: there are no others to notify."""


def _read(txn: Txn) -> tuple[int, list[bytes]]:
    return function_libraries.version(txn), function_libraries.codes(txn)
