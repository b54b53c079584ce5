"""The ports of a switchboard: the store itself, a server that knows nothing of envelopes, a linked store, and a store
that has linked itself to this one.

A plain server: a batch goes out in a transaction, behind a marker that has the envelopes of what follows, on a sharded
channel, which no pattern shows to others. So whoever has a link there knows each message, and its own ones, by the
marker: nothing stands between them. (In a cluster all links talk to the node that has the marker's slot.)

A linked store: envelopes go, in frames, to its process with links, and come from there; sharded channels are their way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from rlite_pubsub.links import envelope
from rlite_pubsub.links.envelope import BadFrame, Envelope
from rlite_pubsub.links.held import Filter, Held
from rlite_pubsub.links.outlet import Outlet
from rlite_pubsub.links.switchboard import Switchboard
from rlite_pubsub.links.wire import Wire
from rlite_pubsub.links.wishes import Name
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS

MARKERS: Final = b"__links__:markers"
DOOR: Final = b"__links__:door"
NONCE_BYTES: Final = 16
_SPECIAL: Final = b"\\*?[]^-"


def door_of(nonce: bytes) -> bytes:
    """Where frames for one guest go."""
    return b"__links__:" + nonce.hex().encode()


class Naming:
    """What names are called at the other side."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._escaped = b"".join(b"\\%c" % byte if byte in _SPECIAL else b"%c" % byte for byte in prefix)

    def there(self, name: bytes) -> bytes:
        return self._prefix + name

    def here(self, name: bytes) -> bytes | None:
        """None: it has no name here."""
        return name[len(self._prefix) :] if name.startswith(self._prefix) else None

    def wanted_there(self, wanted: Name) -> Name:
        """A name, or a pattern, as it is to be subscribed to there."""
        kind, name = wanted
        return kind, (self._escaped if kind == PATTERNS.index else self._prefix) + name


class Figures:
    """What a port has done."""

    def __init__(self) -> None:
        self.messages_in = self.messages_out = self.dropped = self.refused = 0


class HerePort:
    """The store itself, by a session of this process."""

    place = b"here"
    is_plain = False

    def __init__(self, switchboard: Switchboard, framed: Callable[[bytes], None]) -> None:
        """`framed` takes what comes to the store's door."""
        self.figures = Figures()
        self._switchboard = switchboard
        self._framed = framed
        self._held = Held()
        self._executed = Held()  # as `_held` will be, once all that was said is confirmed
        self._echoes: dict[tuple[int, bytes, bytes], int] = {}
        self._outlet = Outlet(self._write)
        self._wire: Wire | None = None

    def begin(self, wire: Wire) -> None:
        """It takes part by this wire, whose pushes go to `pushed`."""
        self._wire = wire

    async def run(self) -> None:
        await self._outlet.run()

    def want(self, names: set[Name]) -> None:
        """Hear what is published to these in the store."""
        names = names | {(SHARDS.index, DOOR)}
        requests = self._held.want(names)
        if requests:
            assert self._wire is not None
            self._wire.subscribe(requests)
            self._executed = _confirmed(names)

    @property
    def wants(self) -> frozenset[Name]:
        return self._held.asked

    def sends(self, kind: int, name: bytes) -> bool:
        return True

    def hears(self, kind: int, name: bytes) -> bool:
        return self._held.hears(kind, name)

    def deliver(self, message: Envelope) -> None:
        self._outlet.put(message)

    def say(self, nonce: bytes, frame: bytes) -> asyncio.Future[list[Any]]:
        """To a guest."""
        assert self._wire is not None
        return self._wire.send([[b"SPUBLISH", door_of(nonce), frame]])

    def pushed(self, pushes: list[list[Any]]) -> None:
        """This has come from the store."""
        held, switchboard, echoes = self._held, self._switchboard, self._echoes
        for push in pushes:
            message = held.hear(push)
            if message is None:
                continue
            if message[1] == DOOR:
                self._framed(message[2])
            elif message in echoes:
                _take_one(echoes, message)
            else:
                self.figures.messages_in += 1
                switchboard.enter(self, *message)

    async def _write(self, batch: list[Envelope]) -> None:
        requests = []
        for message in batch:
            verb = b"SPUBLISH" if message.kind == SHARDS.index else b"PUBLISH"
            requests.append([verb, message.channel, message.payload])
            if self._executed.hears(message.kind, message.channel):
                key = message.kind, message.channel, message.payload
                self._echoes[key] = self._echoes.get(key, 0) + 1
        replies = self._send(requests)
        if replies is not None:
            replies.add_done_callback(lambda done: self._published(batch, done))
        self.figures.messages_out += len(batch)
        await asyncio.sleep(0)

    def _published(self, batch: list[Envelope], done: asyncio.Future[list[Any]]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        for message, reply in zip(batch, done.result(), strict=True):
            if isinstance(reply, Exception):
                self.figures.refused += 1
                _take_one(self._echoes, (message.kind, message.channel, message.payload))

    def _send(self, requests: list[list[bytes]]) -> asyncio.Future[list[Any]] | None:
        assert self._wire is not None
        return self._wire.send(requests) if requests else None


class ServerPort:
    """A server that knows nothing of envelopes."""

    is_plain = True

    def __init__(
        self, switchboard: Switchboard, place: bytes, wanted: Filter, naming: Naming, way: str, figures: Figures
    ) -> None:
        """`way`: in, out or both."""
        self.place = place
        self.figures = figures
        self._switchboard = switchboard
        self._filter = wanted
        self._naming = naming
        self._is_out, self._is_in = way != "in", way != "out"
        self._held = Held()
        self._marked: deque[Envelope] = deque()
        self.outlet = Outlet(self._write)
        self._hearing: Wire | None = None
        self._saying: Wire | None = None

    def begin(self, hearing: Wire, saying: Wire) -> None:
        """It takes part by these wires: one subscribes, and its pushes go to `pushed`; the other one publishes. (Redis
        7.0 puts what a client is pushed in the middle of its own EXEC's reply.)"""
        self._hearing, self._saying = hearing, saying

    def want(self, names: set[Name]) -> None:
        """Subscribe there to what is wanted here, as far as the link is for it. It is heard once that is confirmed."""
        assert self._hearing is not None
        found: set[Name] = set()
        if self._is_in:
            found = {self._naming.wanted_there(name) for name in names if self._filter.narrowed(name)}
            found.add((SHARDS.index, MARKERS))
        requests = self._held.want(found)
        if requests:
            self._hearing.subscribe(requests)

    def sends(self, kind: int, name: bytes) -> bool:
        return self._is_out and self._filter.matches(name)

    def hears(self, kind: int, name: bytes) -> bool:
        return self._filter.matches(name) and self._held.hears(kind, self._naming.there(name))

    def deliver(self, message: Envelope) -> None:
        self.outlet.put(message)

    def pushed(self, pushes: list[list[Any]]) -> None:
        held, marked = self._held, self._marked
        for push in pushes:
            found = held.hear(push)
            if found is None:
                continue
            kind, channel, payload = found
            if channel == MARKERS:
                marked.clear()
                marked.extend(one for one in self._marks(payload) if held.hears(one.kind, one.channel))
                continue
            name = self._naming.here(channel)
            mark = marked.popleft() if marked and marked[0].channel == channel else None
            if name is None or not self._filter.matches(name):
                continue
            self.figures.messages_in += 1
            if mark is not None:
                self._switchboard.take(self, mark._replace(channel=name, payload=payload))
            else:
                self._switchboard.enter(self, kind, name, payload)

    @staticmethod
    def _marks(marker: bytes) -> list[Envelope]:
        try:
            return list(envelope.unpack(marker)) if envelope.kind_of(marker) == envelope.DATA else []
        except BadFrame:
            return []

    async def _write(self, batch: list[Envelope]) -> None:
        assert self._saying is not None
        there = [
            message._replace(channel=self._naming.there(message.channel), payload=b"")
            for message in batch
        ]
        requests: list[list[bytes]] = [[b"MULTI"], [b"SPUBLISH", MARKERS, envelope.pack(there)]]
        for mark, message in zip(there, batch, strict=True):
            verb = b"SPUBLISH" if message.kind == SHARDS.index else b"PUBLISH"
            requests.append([verb, mark.channel, message.payload])
        requests.append([b"EXEC"])
        replies = self._saying.send(requests)
        replies.add_done_callback(lambda done: self._published(len(batch), done))
        await self._saying.stream.drain()

    def _published(self, count: int, done: asyncio.Future[list[Any]]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.figures.dropped += count
        elif isinstance(done.result()[-1], Exception):
            self.figures.refused += count
        else:
            self.figures.messages_out += count


class PeerPort:
    """A linked store, or one that has linked itself to this one: envelopes in frames."""

    is_plain = False

    def __init__(
        self,
        switchboard: Switchboard,
        origin: int,
        say: Callable[[bytes], asyncio.Future[list[Any]]],
        figures: Figures,
        wanted: Filter | None = None,
        naming: Naming | None = None,
        way: str = "both",
    ) -> None:
        """`origin` is its switchboard's; `say` sends a frame. Without a filter it is the other side that has one, and
        goes by what it wants."""
        self.origin = origin
        self.place = b"peer:%d" % origin
        self.figures = figures
        self.told: dict[Name, tuple[int, ...]] = {}
        """What it was told is wanted of it."""
        self.outlet = Outlet(self._write)
        self._switchboard = switchboard
        self._say = say
        self._filter = wanted
        self._naming = naming
        self._is_out, self._is_in = way != "in", way != "out"
        self._wanted = Held()

    def is_wanted(self, names: dict[Name, tuple[int, ...]]) -> None:
        """This is what the other side wants."""
        self._wanted = _confirmed(set(names))
        self._switchboard.change()

    def tell(self, names: dict[Name, tuple[int, ...]]) -> None:
        """Say what is wanted of it."""
        if self._filter is not None:
            names = {name: way for name, way in names.items() if self._is_in and self._filter.narrowed(name)}
        added = {name: way for name, way in names.items() if self.told.get(name) != way}
        removed = self.told.keys() - names.keys()
        self.told = names
        if added or removed:
            self._say(
                envelope.said(
                    envelope.NAMES,
                    added=[[*self._spelled(name), list(way)] for name, way in added.items()],
                    removed=[self._spelled(name) for name in removed],
                )
            )

    def _spelled(self, name: Name) -> list[Any]:
        kind, text = self._naming.wanted_there(name) if self._naming is not None else name
        return [kind, text.decode("latin-1")]

    def sends(self, kind: int, name: bytes) -> bool:
        if self._filter is not None:
            return self._is_out and self._filter.matches(name)
        return self._wanted.hears(kind, name)

    def hears(self, kind: int, name: bytes) -> bool:
        return False  # only a plain server's is asked for

    def deliver(self, message: Envelope) -> None:
        self.outlet.put(message)

    def framed(self, frame: bytes) -> None:
        """Messages of its. Raises BadFrame."""
        for message in envelope.unpack(frame):
            name = self._naming.here(message.channel) if self._naming is not None else message.channel
            if name is None or (self._filter is not None and not (self._is_in and self._filter.matches(name))):
                continue
            self.figures.messages_in += 1
            self._switchboard.take(self, message if name is message.channel else message._replace(channel=name))

    async def _write(self, batch: list[Envelope]) -> None:
        naming = self._naming
        if naming is not None:
            batch = [message._replace(channel=naming.there(message.channel)) for message in batch]
        (receivers,) = await self._say(envelope.pack(batch))
        if isinstance(receivers, Exception) or not receivers:
            self.figures.refused += len(batch)
        else:
            self.figures.messages_out += len(batch)


def names_of(words: dict[str, Any]) -> tuple[dict[Name, tuple[int, ...]], list[Name]]:
    """What a frame of kind NAMES says: (wanted, and by which way; wanted no more). Raises BadFrame."""
    try:
        added = {(int(kind), text.encode("latin-1")): tuple(way) for kind, text, way in words["added"]}
        return added, [(int(kind), text.encode("latin-1")) for kind, text in words["removed"]]
    except (KeyError, ValueError, TypeError, AttributeError) as failure:
        raise BadFrame("a frame can't be read") from failure


def _confirmed(names: set[Name]) -> Held:
    held = Held()
    held.want(names)
    words = {CHANNELS.index: CHANNELS, PATTERNS.index: PATTERNS, SHARDS.index: SHARDS}
    for kind, name in names:
        held.hear([words[kind].subscribed, name, 0])
    return held


def _take_one(counts: dict[tuple[int, bytes, bytes], int], key: tuple[int, bytes, bytes]) -> None:
    left = counts.get(key, 0) - 1
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)
