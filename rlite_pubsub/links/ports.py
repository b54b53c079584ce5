"""The ports of a switchboard to other servers: one that knows nothing of envelopes, a linked store, and a store that
has linked itself to this one. (The store itself: here_port.py.)

A plain server: a batch goes out in a transaction, behind a marker that has the envelopes of what follows, on a sharded
channel, which no pattern shows to others. So whoever has a link there knows each message, and its own ones, by the
marker: nothing stands between them. (In a cluster all links talk to the node that has the marker's slot, about
channels; sharded channels have nodes and markers of their own, see cluster_shards.py.)

A linked store: envelopes go, in frames, to its process with links, and come from there; sharded channels are their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from rlite_pubsub.links import envelope
from rlite_pubsub.links.cluster_shards import ClusterShards
from rlite_pubsub.links.envelope import BadFrame, Envelope, run_of
from rlite_pubsub.links.held import Filter, Held
from rlite_pubsub.links.link_wire import LinkWire, ServerWire
from rlite_pubsub.links.markers import MarkerReader, transaction
from rlite_pubsub.links.naming import Figures, Naming
from rlite_pubsub.links.outlet import Outlet, count_of
from rlite_pubsub.links.switchboard import Switchboard
from rlite_pubsub.links.wishes import Name
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS

MARKERS: Final = b"__links__:markers"
DOOR: Final = b"__links__:door"
"""Where a store's process with links is spoken to."""
NONCE_BYTES: Final = 16
_MOVED: Final = "the node no longer has the slot of the markers"


def door_of(nonce: bytes) -> bytes:
    """Return the channel of frames for one guest."""
    return b"__links__:" + nonce.hex().encode()


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
        self._saying: ServerWire | None = None
        self._shards: ClusterShards | None = None
        self._is_misplaced = False

    def begin(self, hearing: LinkWire, saying: ServerWire, shards: ClusterShards | None) -> None:
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

    def deliver(self, messages: Envelope) -> None:
        if messages.kind == SHARDS.index and self._shards is not None:
            self._shards.outlet.put(messages)
        else:
            self.outlet.put(messages)

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

    def came(self, kind: int, channel: bytes, tails: list[bytes], mark: Envelope | None) -> None:
        """A run of messages, by its name there, and what its marker says."""
        name = self._naming.here(channel)
        if name is None or not self._filter.matches(name):
            return
        count, run = len(tails), run_of(tails)
        self.figures.messages_in += count
        if mark is not None:
            self._switchboard.take(self, mark._replace(channel=name, length=count, run=run))
        else:
            self._switchboard.enter(self, kind, name, count, run)

    async def _write(self, batch: list[Envelope]) -> None:
        assert self._saying is not None
        if self._is_misplaced:
            self.figures.dropped += count_of(batch)
            raise OSError(_MOVED)
        there = [messages._replace(channel=self._naming.there(messages.channel)) for messages in batch]
        replies = self._saying.send_packed(*transaction(MARKERS, there))
        replies.add_done_callback(partial(self._published, count_of(batch)))
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
        self._wanted = confirmed(set(names))
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

    def deliver(self, messages: Envelope) -> None:
        self.outlet.put(messages)

    def framed(self, frame: bytes) -> None:
        """Messages of its. Raises BadFrame."""
        for messages in envelope.unpack(frame):
            name = self._naming.here(messages.channel) if self._naming is not None else messages.channel
            if name is None or (self._filter is not None and not (self._is_in and self._filter.matches(name))):
                continue
            self.figures.messages_in += messages.length
            self._switchboard.take(self, messages if name is messages.channel else messages._replace(channel=name))

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
            batch = [messages._replace(channel=naming.there(messages.channel)) for messages in batch]
        (receivers,) = await self._say(envelope.pack(batch))
        if isinstance(receivers, Exception) or not receivers:
            self.figures.refused += count_of(batch)
        else:
            self.figures.messages_out += count_of(batch)


def names_of(words: dict[str, Any]) -> tuple[dict[Name, tuple[int, ...]], list[Name]]:
    """Return the names in a frame of kind NAMES: (wanted, and by which way; no longer wanted). Raises BadFrame."""
    try:
        added = {(int(kind), text.encode("latin-1")): tuple(way) for kind, text, way in words["added"]}
        return added, [(int(kind), text.encode("latin-1")) for kind, text in words["removed"]]
    except (KeyError, ValueError, TypeError, AttributeError) as failure:
        raise BadFrame("a frame can't be read") from failure


def confirmed(names: set[Name]) -> Held:
    """Return what hears these names."""
    held = Held()
    held.want(names)
    words = {CHANNELS.index: CHANNELS, PATTERNS.index: PATTERNS, SHARDS.index: SHARDS}
    for kind, name in names:
        held.hear([words[kind].subscribed, name, 0])
    return held
