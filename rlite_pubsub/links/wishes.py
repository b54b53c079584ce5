"""The names that are wanted here, by whom, and what a neighbour is told of them.

A neighbour is told each name with the way to it: the stores between, the nearest first. A store that finds itself on
such a way does not count it, so that a name which nobody holds any more is soon wanted by nobody, in rings, too.
"""

from __future__ import annotations

from collections.abc import Iterable

Name = tuple[int, bytes]
"""(Kind.index, the name)"""
Way = tuple[int, ...]
"""Origins of switchboards."""


class Wishes:
    """Of one switchboard."""

    def __init__(self, origin: int) -> None:
        self._origin = origin
        self._here: frozenset[Name] = frozenset()
        self._of: dict[object, dict[Name, Way]] = {}

    def hold(self, names: Iterable[Name]) -> bool:
        """These are held in the store itself. True if that is news."""
        found = frozenset(names)
        is_news = found != self._here
        self._here = found
        return is_news

    def hear(self, neighbour: object, added: dict[Name, Way], removed: Iterable[Name]) -> None:
        """Note that a neighbour wants these, and no longer wants those."""
        of = self._of.setdefault(neighbour, {})
        for name in removed:
            of.pop(name, None)
        for name, way in added.items():
            if self._origin in way:
                of.pop(name, None)
            else:
                of[name] = way

    def forget(self, neighbour: object) -> None:
        """It is gone."""
        self._of.pop(neighbour, None)

    @property
    def here(self) -> frozenset[Name]:
        """The names held in the store itself."""
        return self._here

    def of(self, neighbour: object) -> dict[Name, Way]:
        """Return what a neighbour wants."""
        return self._of.get(neighbour, {})

    def for_neighbour(self, neighbour: object, origin: int | None) -> dict[Name, Way]:
        """Return what is wanted of a neighbour: by the store itself, and by others whose way does not lead through it.
        `origin` is its own; None: it has none."""
        found: dict[Name, Way] = {name: (self._origin,) for name in self._here}
        for other, names in self._of.items():
            if other is neighbour:
                continue
            for name, way in names.items():
                known = found.get(name)
                if origin not in way and (known is None or len(known) > len(way) + 1):
                    found[name] = (self._origin, *way)
        return found
