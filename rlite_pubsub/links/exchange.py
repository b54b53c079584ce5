"""All links of one store, in one process: what is asked for, what is held in the store, and who takes part."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from functools import partial
from typing import Any, Final

from rlite_pubsub.embedded.host import Host
from rlite_pubsub.links import envelope
from rlite_pubsub.links.definition import Definition
from rlite_pubsub.links.envelope import BadFrame
from rlite_pubsub.links.failing import BREAKS, SILENCE_SECONDS
from rlite_pubsub.links.here_port import HerePort
from rlite_pubsub.links.link import Link
from rlite_pubsub.links.link_wire import LinkWire, StoreStream
from rlite_pubsub.links.naming import Figures
from rlite_pubsub.links.ports import NONCE_BYTES, PeerPort, names_of
from rlite_pubsub.links.switchboard import Switchboard
from rlite_pubsub.links.target import BadTarget
from rlite_pubsub.links.topics import Topics
from rlite_pubsub.links.wishes import Name, Wishes
from rlite_pubsub.pubsub.kinds import KINDS, SHARDS
from rlite_pubsub.storage.commons import identity, link_records, link_state
from rlite_pubsub.storage.commons.link_state import LinksState, LinkState

log: Final = logging.getLogger("rlite_pubsub")

LOOK_SECONDS: Final = 0.02
"""Between two looks at shared memory: whether names or links have changed."""
TELL_SECONDS: Final = 1.0


class _Guest:
    """A store that has linked itself to this one."""

    def __init__(self, port: PeerPort, name: str) -> None:
        self.port = port
        self.name = name
        self.heard_at = time.monotonic()
        self.task = asyncio.ensure_future(port.outlet.run())


class Exchange:
    """One process's."""

    def __init__(self, folder: str) -> None:
        self.switchboard = Switchboard(secrets.randbits(63))
        self._folder = folder
        self._wishes = Wishes(self.switchboard.origin)
        self._links: dict[str, tuple[Link, asyncio.Task[None] | None]] = {}
        self._ending: set[str] = set()
        """The links among them that are being dropped."""
        self._guests: dict[bytes, _Guest] = {}
        self._here = HerePort(self.switchboard, self._framed)
        self._is_changed = True
        self._host: Host | None = None
        self._own = b""  # the store's id
        self._seen = (-1, -1)
        self._told_at = 0.0

    async def run(self, ended: asyncio.Event) -> None:
        """Keep the links until `ended` is set. Raises what the store raises; then everything starts over."""
        stream = StoreStream(self._folder)
        self._host = stream.line.host
        data = self._host.store.data
        self._own = (data.read(identity.get) or data.write(identity.settle)).encode()
        self._host.syncing.late()  # law 10: no turn ends behind this write, which would see to its pin
        wire = LinkWire(stream, self._here.pushed)
        outlet: asyncio.Task[None] | None = None
        try:
            await wire.ask(b"HELLO", b"3", b"SETNAME", b"links")
            self._here.begin(wire, stream)
            self.switchboard.join(self._here)
            outlet = asyncio.ensure_future(self._here.run())
            while not ended.is_set():
                self._look()
                for each in (wire.ended, outlet):
                    if each.done():
                        each.result()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            if outlet is not None:
                outlet.cancel()
            self._here.end()
            await self._end(wire)

    async def _end(self, wire: LinkWire) -> None:
        for name in list(self._links):
            await self._drop(name)
        for nonce in list(self._guests):
            self._dismiss(nonce, envelope.BYE)
        await wire.close()

    # -- looking

    def _look(self) -> None:
        host = self._host
        assert host is not None
        numbers = host.store.routes.numbers
        seen = numbers[0], numbers[2]
        if seen[1] != self._seen[1]:
            self._obey(host.store.data.read(link_records.every))
        if seen[0] != self._seen[0]:
            self._is_changed |= self._wishes.hold(self._held(host))
        self._seen = seen
        now = time.monotonic()
        if now >= self._told_at + TELL_SECONDS:
            self._told_at = now
            self._forget_silent(now)
            self._tell()
        if self._is_changed:
            self._is_changed = False
            self._settle()

    @staticmethod
    def _held(host: Host) -> set[Name]:
        """Return what other subscribers of the store hold."""
        neighbours = host.hub.neighbours
        assert neighbours is not None
        with host.lock:
            host.hub.look_around()
            return {
                (kind.index, name)
                for kind in KINDS
                for name in neighbours.held(kind)
                if not name.startswith(b"__links__:")
            }

    def _change(self) -> None:
        self._is_changed = True

    def _settle(self) -> None:
        """Have every port hear what it is to hear now."""
        wishes = self._wishes
        wanted: set[Name] = set()
        for link, _ in self._links.values():
            if link.definition.direction != "in":
                found = link.definition.wanted_channels
                wanted |= found.names
                wanted |= {(SHARDS.index, name) for kind, name in found.names if kind == 0}
                wanted |= {name for name in wishes.here if name[0] == SHARDS.index and found.matches(name[1])}
        for guest in self._guests.values():
            wanted |= wishes.of(guest.port).keys()
        self._here.want(wanted)
        for link, _ in self._links.values():
            port = link.port
            if isinstance(port, PeerPort):
                port.tell(wishes.for_neighbour(port, port.origin))
            elif port is not None:
                port.want(set(wishes.for_neighbour(port, None)))
        for guest in self._guests.values():
            guest.port.tell(wishes.for_neighbour(guest.port, guest.port.origin))
        self.switchboard.change()

    # -- links

    def _obey(self, records: dict[str, bytes]) -> None:
        """Make the links that these records ask for."""
        wanted: dict[str, Definition] = {}
        for name, record in records.items():
            try:
                wanted[name] = Definition.of(record)
            except (ValueError, TypeError) as failure:
                log.warning("The link %s can't be read: %s", name, failure)
        for name in list(self._links):
            if name not in self._ending and wanted.get(name) != self._links[name][0].definition:
                self._ending.add(name)
                asyncio.ensure_future(self._drop(name))
        for name, definition in wanted.items():
            if name not in self._links:
                self._begin(definition)
        self._is_changed = True

    def _begin(self, definition: Definition) -> None:
        try:
            topics = None
            if definition.topics:
                topics = Topics(definition, definition.target, self._folder, self._own)
            link = Link(definition, self.switchboard, self._wishes, self._change, topics)
        except BadTarget as failure:
            log.warning("The link %s leads nowhere: %s", definition.name, failure)
            return
        self._links[definition.name] = (link, None if definition.is_paused else asyncio.ensure_future(link.run()))

    async def _drop(self, name: str) -> None:
        """End a link, and then see whether another one of its name is wanted."""
        _, task = self._links.get(name, (None, None))
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._links.pop(name, None)
        self._ending.discard(name)
        self._seen = self._seen[0], -1

    # -- guests

    def _framed(self, said: bytes) -> None:
        """A guest has said this."""
        nonce, frame = said[:NONCE_BYTES], said[NONCE_BYTES:]
        try:
            kind = envelope.kind_of(frame)
            guest = self._guests.get(nonce)
            if kind == envelope.HELLO:
                self._welcome(nonce, envelope.words_of(frame))
            elif kind == envelope.BYE:
                self._dismiss(nonce)
            elif guest is None:
                self._here.say(nonce, envelope.said(envelope.WHO))
            else:
                guest.heard_at = time.monotonic()
                self._hear(nonce, guest, kind, frame)
        except (BadFrame, KeyError, TypeError, ValueError) as failure:
            log.warning("A linked store sends what can't be understood: %s", failure)

    def _welcome(self, nonce: bytes, words: dict[str, Any]) -> None:
        origin = int(words["origin"])
        self._here.say(nonce, envelope.said(envelope.WELCOME, origin=str(self.switchboard.origin)))
        if origin == self.switchboard.origin:
            return
        port = PeerPort(self.switchboard, origin, partial(self._here.say, nonce), Figures())
        self._guests[nonce] = _Guest(port, str(words["name"]))
        self.switchboard.join(port)
        self._is_changed = True

    def _hear(self, nonce: bytes, guest: _Guest, kind: int, frame: bytes) -> None:
        if kind == envelope.DATA:
            guest.port.framed(frame)
        elif kind == envelope.NAMES:
            self._wishes.hear(guest.port, *names_of(envelope.words_of(frame)))
            guest.port.is_wanted(self._wishes.of(guest.port))
            self._is_changed = True
        elif kind == envelope.ALIVE:
            self._here.say(nonce, envelope.said(envelope.ALIVE))

    def _dismiss(self, nonce: bytes, word: int | None = None) -> None:
        guest = self._guests.pop(nonce, None)
        if guest is None:
            return
        guest.task.cancel()
        self.switchboard.leave(guest.port)
        self._wishes.forget(guest.port)
        self._is_changed = True
        if word is not None:
            try:
                self._here.say(nonce, envelope.said(word))
            except BREAKS as failure:
                log.debug("Can't tell a linked store that the links end: %s", failure)

    def _forget_silent(self, now: float) -> None:
        for nonce, guest in list(self._guests.items()):
            if now - guest.heard_at > SILENCE_SECONDS or guest.task.done():
                self._dismiss(nonce, envelope.WHO)

    # -- telling

    def _tell(self) -> None:
        """All who have the store, by a file."""
        assert self._host is not None
        links = [self._state_of(link) for link, _ in self._links.values()]
        guests = [guest.name for guest in self._guests.values()]
        state = LinksState(int(time.time() * 1000), guests, self.switchboard.repeated, links)
        try:
            link_state.write(self._host.store.folder, state)
        except OSError as failure:
            log.warning("Can't record the state of the links: %s", failure)

    @staticmethod
    def _state_of(link: Link) -> LinkState:
        carriers = list(link.topics.carriers.values()) if link.topics is not None else []
        entries_out = sum(each.entries for each in carriers if each.leg.is_out)
        return LinkState(
            name=link.definition.name,
            url=link.target.shown,
            state=link.state,
            since_ms=int(link.since * 1000),
            error=link.error,
            is_store=link.is_peer,
            failures=link.failures,
            messages_in=link.figures.messages_in,
            messages_out=link.figures.messages_out,
            dropped=link.dropped,
            refused=link.figures.refused,
            bytes_in=link.bytes_in + sum(each.bytes_in for each in carriers),
            bytes_out=link.bytes_out + sum(each.bytes_out for each in carriers),
            entries_in=sum(each.entries for each in carriers) - entries_out,
            entries_out=entries_out,
            lag=sum(each.lag for each in carriers),
            lag_ms=max([each.lag_ms for each in carriers], default=0),
            gaps=sum(each.lost for each in carriers),
            topics=[
                {
                    "name": each.leg.name.decode("latin-1"),
                    "direction": "out" if each.leg.is_out else "in",
                    "state": each.state,
                    "entries": each.entries,
                    "lag": each.lag,
                    "gaps": each.lost,
                    "error": each.error,
                }
                for each in carriers
            ],
        )
