"""The ports of a switchboard: the store itself, a server that knows nothing of envelopes, a linked store, and a store
that has linked itself to this one.

A plain server: a batch goes out in a transaction, behind a marker that has the envelopes of what follows, on a sharded
channel, which no pattern shows to others. So whoever has a link there knows each message, and its own ones, by the
marker: nothing stands between them. (In a cluster all links talk to the node that has the marker's slot, about
channels; sharded channels have nodes and markers of their own, see cluster_shards.py.)

A linked store: envelopes go, in frames, to its process with links, and come from there; sharded channels are their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from rlite_pubsub.links import envelope
from rlite_pubsub.links.cluster_shards import ClusterShards
from rlite_pubsub.links.envelope import BadFrame, Envelope
from rlite_pubsub.links.held import Filter, Held
from rlite_pubsub.links.link_wire import LinkWire
from rlite_pubsub.links.markers import MarkerReader, transaction, verb_of
from rlite_pubsub.links.naming import Figures, Naming
from rlite_pubsub.links.outlet import Outlet
from rlite_pubsub.links.switchboard import Switchboard
from rlite_pubsub.links.wishes import Name
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS

MARKERS: Final = b"__links__:markers"
DOOR: Final = b"__links__:door"
NONCE_BYTES: Final = 16
_MOVED: Final = "the node no longer has the slot of the markers"


def door_of(nonce: bytes) -> bytes:
    """Return the channel of frames for one guest."""
    return b"__links__:" + nonce.hex().encode()


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
        self._wire: LinkWire | None = None

    def begin(self, wire: LinkWire) -> None:
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
        """Send a frame to a guest."""
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
            requests.append([verb_of(message.kind), message.channel, message.payload])
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
        self._reader = MarkerReader(self.came, MARKERS.__eq__)
        self._held = self._reader.held
        self.outlet = Outlet(self._write)
        self._hearing: LinkWire | None = None
        self._saying: LinkWire | None = None
        self._shards: ClusterShards | None = None
        self._is_misplaced = False

    def begin(self, hearing: LinkWire, saying: LinkWire, shards: ClusterShards | None) -> None:
        """It takes part by these wires: one subscribes, and its pushes go to `pushed`; the other one publishes. (Redis
        7.0 puts what a client is pushed in the middle of its own EXEC's reply.) `shards` has a cluster's."""
        self._hearing, self._saying, self._shards = hearing, saying, shards

    def want(self, names: set[Name]) -> None:
        """Subscribe there to what is wanted here and is of the link. It is heard once that is confirmed."""
        assert self._hearing is not None
        found: set[Name] = set()
        if self._is_in:
            found = {self._naming.wanted_there(name) for name in names if self._filter.narrowed(name)}
            if self._shards is not None:
                sharded = {name for name in found if name[0] == SHARDS.index}
                found -= sharded
                self._shards.want(name for _, name in sharded)
            found.add((SHARDS.index, MARKERS))
        requests = self._held.want(found)
        if requests:
            self._hearing.subscribe(requests)

    def sends(self, kind: int, name: bytes) -> bool:
        return self._is_out and self._filter.matches(name)

    def hears(self, kind: int, name: bytes) -> bool:
        if not self._filter.matches(name):
            return False
        there = self._naming.there(name)
        if kind == SHARDS.index and self._shards is not None:
            return self._shards.hears(there)
        return self._held.hears(kind, there)

    def deliver(self, message: Envelope) -> None:
        if message.kind == SHARDS.index and self._shards is not None:
            self._shards.outlet.put(message)
        else:
            self.outlet.put(message)

    @property
    def dropped(self) -> int:
        """Messages that its outlets did not take."""
        return self.outlet.dropped + (self._shards.outlet.dropped if self._shards is not None else 0)

    def give_up(self) -> None:
        """Nothing goes out any more."""
        self.outlet.give_up()
        if self._shards is not None:
            self._shards.outlet.give_up()

    def pushed(self, pushes: list[list[Any]]) -> None:
        """Raises OSError where the node no longer has the slot of the markers."""
        self._reader.pushed(pushes)
        for push in pushes:
            if push[0] == SHARDS.unsubscribed and push[1] == MARKERS and (SHARDS.index, MARKERS) in self._held.asked:
                raise OSError(_MOVED)

    def came(self, kind: int, channel: bytes, payload: bytes, mark: Envelope | None) -> None:
        """A message, by its name there, and what its marker says."""
        name = self._naming.here(channel)
        if name is None or not self._filter.matches(name):
            return
        self.figures.messages_in += 1
        if mark is not None:
            self._switchboard.take(self, mark._replace(channel=name, payload=payload))
        else:
            self._switchboard.enter(self, kind, name, payload)

    async def _write(self, batch: list[Envelope]) -> None:
        assert self._saying is not None
        if self._is_misplaced:
            self.figures.dropped += len(batch)
            raise OSError(_MOVED)
        there = [message._replace(channel=self._naming.there(message.channel), payload=b"") for message in batch]
        replies = self._saying.send(transaction(MARKERS, there, batch))
        replies.add_done_callback(lambda done: self._published(len(batch), done))
        await self._saying.stream.drain()

    def _published(self, count: int, done: asyncio.Future[list[Any]]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.figures.dropped += count
        elif isinstance(done.result()[-1], Exception):
            self.figures.refused += count
            self._is_misplaced |= any(str(reply).startswith("MOVED") for reply in done.result()[:2])
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

    @property
    def dropped(self) -> int:
        """Messages that its outlet did not take."""
        return self.outlet.dropped

    def give_up(self) -> None:
        """Nothing goes out any more."""
        self.outlet.give_up()

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
    """Return the names in a frame of kind NAMES: (wanted, and by which way; no longer wanted). Raises BadFrame."""
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
