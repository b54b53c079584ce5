"""Routes found lately, in two generations: when the young one is full the old one is forgotten.

So a route in use stays, a million one-off names cost no more memory than the first few thousand, and nothing is kept in
order of use.
"""

from __future__ import annotations

from rlite_pubsub.pubsub.route import Route

GENERATION_ROUTES = 4096
MAX_NAME_BYTES = 1024
"""A longer name's route is built anew for each message."""


class RouteCache:
    """Routes by name. `young` may be asked directly: what is in it is right."""

    __slots__ = ("_old", "young")

    def __init__(self) -> None:
        self.young: dict[bytes, Route] = {}
        self._old: dict[bytes, Route] = {}

    def get(self, name: bytes) -> Route | None:
        """A route that was put; it is young again."""
        route = self.young.get(name)
        if route is None and (route := self._old.get(name)) is not None:
            self.put(name, route)
        return route

    def put(self, name: bytes, route: Route) -> None:
        """Keep a route until it, or all, are dropped, or it has not been used for long."""
        if len(name) > MAX_NAME_BYTES:
            return
        if len(self.young) >= GENERATION_ROUTES:
            self._old = dict(self.young)
            self.young.clear()
        self.young[name] = route

    def drop(self, name: bytes) -> None:
        """This name's receivers have changed."""
        self.young.pop(name, None)
        self._old.pop(name, None)

    def drop_all(self) -> None:
        """Any name's receivers may have changed."""
        self.young.clear()
        self._old.clear()

    def __len__(self) -> int:
        return len(self.young.keys() | self._old.keys())
