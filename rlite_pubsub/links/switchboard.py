"""Where the messages of all links of one store meet: which of them are new, and where each one goes.

Promises, however stores are linked (twice, in a ring, with prefixes):
 - A message that entered at a store is handed on at most once at each other store, and comes back to none.
 - A server that knows nothing of envelopes is told by the first store on the way that has a link to it, and by none
   behind that. (Where two ways lead to it through different stores, its own clients hear a message twice.)
 - What one publisher said to one channel keeps its order: a message that a later one has overtaken, over a quicker
   way, is dropped (and counted), never handed on behind it.
Messages go in runs (envelope.py); a run may come again in part.
All of it holds by comparing numbers, not by luck: of each origin and channel the greatest number that was seen is
known. Where that is too much to keep, one number stands for all that was forgotten.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from rlite_pubsub.links.envelope import MOST_HOPS, Envelope

CHANNELS_KEPT: Final = 32768
"""Of each origin, in each of two generations."""
ORIGINS_KEPT: Final = 4096


class Port(Protocol):
    """One way in and out: the store itself, or a link."""

    place: bytes
    """Of which server, or store, it is: two links to the same one have the same."""
    is_plain: bool
    """The server there knows nothing of envelopes."""

    def sends(self, kind: int, name: bytes) -> bool:
        """Return whether what is published to this name is to go out here."""

    def hears(self, kind: int, name: bytes) -> bool:
        """Return whether everything published to this name at `place` comes in here."""

    def deliver(self, messages: Envelope) -> None:
        """Let them out, before long."""


class _Entrance(NamedTuple):
    """What is the same for all messages that enter by one port, to one name."""

    place: bytes
    """What their envelopes say."""
    ports: list[Port]
    told: tuple[bytes, ...]


class _Seen:
    """The greatest numbers of one origin."""

    __slots__ = ("floor", "old", "young")

    def __init__(self) -> None:
        self.young: dict[tuple[int, bytes], int] = {}
        self.old: dict[tuple[int, bytes], int] = {}
        self.floor = 0

    def note(self, key: tuple[int, bytes], number: int) -> int:
        """Note that a number was seen; return the greatest one before."""
        last = self.young.get(key)
        if last is None:
            last = self.old.get(key, self.floor)
        if number <= last:
            return last
        if len(self.young) >= CHANNELS_KEPT and key not in self.young:
            self.floor = max(self.floor, *self.old.values()) if self.old else self.floor
            self.old, self.young = self.young, {}
        self.young[key] = number
        return last


class Switchboard:
    """Of one store."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.ports: list[Port] = []
        self.repeated = 0
        """Messages that had come before, or that a later one had overtaken."""
        self._number = 0
        self._seen: dict[int, _Seen] = {}
        self._routes: dict[tuple[int, bytes], list[Port]] = {}
        self._entrances: dict[tuple[Port, int, bytes], _Entrance] = {}

    def join(self, port: Port) -> None:
        """It takes part."""
        self.ports.append(port)
        self.change()

    def leave(self, port: Port) -> None:
        """Remove a port, which takes part no longer."""
        if port in self.ports:
            self.ports.remove(port)
            self.change()

    def change(self) -> None:
        """Forget the routes: what some port sends or hears has changed."""
        self._routes.clear()
        self._entrances.clear()

    def enter(self, source: Port, kind: int, channel: bytes, count: int, run: bytes) -> None:
        """Somebody has published this run of messages at the place of `source`: it has no envelope yet."""
        if source.is_plain and self._is_anothers(source, kind, channel):
            return
        key = source, kind, channel
        entrance = self._entrances.get(key)
        if entrance is None:
            if len(self._entrances) >= CHANNELS_KEPT:
                self._entrances.clear()
            place = source.place if source.is_plain else b""
            entrance = self._entrances[key] = _Entrance(place, *self._chosen(source, kind, channel, place, ()))
        number = self._number + 1
        self._number += count
        place, ports, told = entrance
        if ports:
            messages = Envelope(self.origin, number, count, 0, kind, place, channel, channel, run, told)
            for port in ports:
                port.deliver(messages)

    def take(self, source: Port, messages: Envelope) -> None:
        """These have come in over `source`."""
        count = messages.length
        if messages.origin == self.origin or messages.hops >= MOST_HOPS:
            self.repeated += count
            return
        known = self._known(source, messages)
        if known:
            self.repeated += known
            if known == count:
                return
            messages = messages.without(known)
        self._hand_on(source, messages._replace(hops=messages.hops + 1))

    def _is_anothers(self, source: Port, kind: int, channel: bytes) -> bool:
        """Return whether a port before this one hears the same at the same place."""
        for port in self.ports:
            if port is source:
                return False
            if port.place == source.place and port.hears(kind, channel):
                return True
        return False

    def _known(self, source: Port, messages: Envelope) -> int:
        """Return how many of them, the first ones, have come before or were overtaken."""
        count = messages.length
        if messages.entry:
            for port in self.ports:
                if port.place == messages.entry and port.is_plain and port.hears(messages.kind, messages.channel):
                    return count  # they come, or came, from there without a detour
        seen = self._seen.get(messages.origin)
        if seen is None:
            if len(self._seen) >= ORIGINS_KEPT:
                del self._seen[next(iter(self._seen))]
            seen = self._seen[messages.origin] = _Seen()
        first = messages.number
        last = seen.note((messages.kind, messages.born), first + count - 1)
        return min(max(last - first + 1, 0), count)

    def _hand_on(self, source: Port, messages: Envelope) -> None:
        ports, told = self._chosen(source, messages.kind, messages.channel, messages.entry, messages.told)
        if told != messages.told:
            messages = messages._replace(told=told)
        for port in ports:
            port.deliver(messages)

    def _chosen(
        self, source: Port, kind: int, channel: bytes, entry: bytes, told: tuple[bytes, ...]
    ) -> tuple[list[Port], tuple[bytes, ...]]:
        """Return the ports by which a message goes on, and the places that have it then."""
        key = kind, channel
        ports = self._routes.get(key)
        if ports is None:
            if len(self._routes) >= CHANNELS_KEPT:
                self._routes.clear()
            ports = self._routes[key] = [port for port in self.ports if port.sends(*key)]
        known = {source.place, entry, *told}
        chosen = []
        for port in ports:
            if port.place not in known:
                known.add(port.place)
                chosen.append(port)
        return chosen, (*told, *(port.place for port in chosen if port.is_plain))
