"""The settings of one server: every directive's present value.

A value is set whole or not at all: if it cannot be read, or the part that must apply it refuses, the old value stays.
Several set together are all set, or none is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rlite_pubsub.engine.settings.directive import Directive, SettingError
from rlite_pubsub.engine.settings.directives import DIRECTIVES, PRIMARY
from rlite_pubsub.protocol.errors import c_string

__all__ = ["SettingError", "Settings"]

Words = Sequence[bytes]


class RefusedSetting(SettingError):
    """One of several settings is refused; `name` says which."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class Settings:
    """`settings["maxclients"]` is a typed value: int, bool, bytes, a tuple or a small frozen dataclass."""

    def __init__(self, initial: Mapping[str, str] | None = None) -> None:
        """Begin with all defaults except `initial`, whose values are written as in a configuration file. Raises
        SettingError."""
        self._values: dict[str, Any] = {}
        self.users: dict[bytes, list[bytes]] = {}
        """Rules of users that a configuration file names, for the start of the server."""
        self.links: dict[bytes, list[bytes]] = {}
        """The words of links that it names, likewise."""
        self.said: set[str] = set()
        """Directives that were set, whatever to."""
        self._listeners: dict[str, list[Callable[[Any], None]]] = {}
        for directive in DIRECTIVES.values():
            self._values[directive.name] = directive.kind.parse(directive.default, None)
        for name, value in (initial or {}).items():
            self.set(name, split(self.directive(name), value.encode()))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            return self._values[PRIMARY[name]]

    def directive(self, name: str) -> Directive:
        """Return the declaration of a name or alias. Raises SettingError if there is none."""
        primary = PRIMARY.get(name)
        if primary is None:
            raise SettingError("Bad directive or wrong number of arguments")
        return DIRECTIVES[primary]

    def text(self, name: str) -> bytes:
        """Return the value as CONFIG GET prints it."""
        return DIRECTIVES[PRIMARY[name]].kind.text(self[name])

    def is_default(self, name: str) -> bool:
        """Return whether the value is the default."""
        directive = DIRECTIVES[PRIMARY[name]]
        return bool(self[name] == directive.kind.parse(directive.default, None))

    @property
    def asks_for_http(self) -> bool:
        """True if HTTP is wanted, with TLS or without."""
        return bool(self["http-port"] or self["http-tls-port"])

    def on_change(self, name: str, callback: Callable[[Any], None]) -> None:
        """Call `callback(value)` at every change. It may refuse by raising SettingError: then the old value returns."""
        self._listeners.setdefault(PRIMARY[name], []).append(callback)

    def follow(self, names: Iterable[str], obey: Callable[[], None]) -> None:
        """Call `obey` now, and whenever one of these has changed. It may refuse a change, like `on_change`."""
        for name in names:
            self.on_change(name, lambda _: obey())
        obey()

    def set(self, name: str, words: Words) -> None:
        """Set one value. Raises SettingError."""
        self.set_all([(name, words)])

    def adopt(self, name: str, value: Any) -> None:
        """Show a value that others have put into effect already."""
        self._values[PRIMARY[name]] = value

    def set_all(self, pairs: Iterable[tuple[str, Words]]) -> None:
        """Set several values, or none. Raises RefusedSetting, which names the one at fault."""
        old = dict(self._values)
        changed: list[str] = []
        try:
            for name, words in pairs:
                if self._put(name, words):
                    changed.append(name)
            for name in changed:
                self._notify(name)
        except RefusedSetting:
            self._restore(old, changed)
            raise

    def _put(self, name: str, words: Words) -> bool:
        try:
            directive = self.directive(name)
            if not directive.kind.many and len(words) != 1:
                raise SettingError("wrong number of arguments")
            if not directive.kind.binary:
                words = [c_string(word) for word in words]
            previous = self._values[directive.name]
            value = directive.kind.parse(words, previous)
        except SettingError as refusal:
            raise RefusedSetting(name, str(refusal)) from refusal
        self._values[directive.name] = value
        self.said.add(directive.name)
        return bool(value != previous) or "volatile" in directive.flags

    def _notify(self, name: str) -> None:
        try:
            for callback in self._listeners.get(PRIMARY[name], ()):
                callback(self[name])
        except SettingError as refusal:
            raise RefusedSetting(name, str(refusal)) from refusal

    def _restore(self, old: dict[str, Any], changed: list[str]) -> None:
        """Bring back the old values, also for the listeners that have seen new ones."""
        new, self._values = self._values, old
        for name in changed:
            if new[PRIMARY[name]] != old[PRIMARY[name]]:
                self._notify(name)


def split(directive: Directive, value: bytes) -> list[bytes]:
    """Return one argument as the words of a value: split at each blank if the value may have several words."""
    if not directive.kind.many:
        return [value]
    return value.split(b" ") if value else []
