"""One link, from connection to connection, for as long as it is wanted."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.links import envelope
from rlite_pubsub.links.cluster_shards import ClusterShards
from rlite_pubsub.links.failing import (
    BREAKS,
    CONNECTING,
    DOWN,
    PAUSED,
    RETRY_SECONDS,
    SIGN_SECONDS,
    SILENCE_SECONDS,
    UP,
)
from rlite_pubsub.links.naming import Figures, Naming
from rlite_pubsub.links.ports import (
    DOOR,
    MARKERS,
    NONCE_BYTES,
    PeerPort,
    ServerPort,
    door_of,
    names_of,
)

if TYPE_CHECKING:
    from rlite_pubsub.links.definition import Definition
    from rlite_pubsub.links.link_wire import ByteStream, LinkWire, ServerWire
    from rlite_pubsub.links.switchboard import Switchboard
    from rlite_pubsub.links.topics import Topics
    from rlite_pubsub.links.wishes import Wishes

log: Final = logging.getLogger("rlite_pubsub")

SERVER_ID: Final = b"__links__:server"
"""A key at a server that is no store like this one: its runs have ids of their own, but its topics outlive them."""
_JOIN_SECONDS: Final = 0.05
_WELCOME_SECONDS: Final = 10.0


class Silent(OSError):
    """The other side says nothing any more."""


class Link:
    """Made by the exchange; `run` is its task."""

    def __init__(
        self,
        definition: Definition,
        switchboard: Switchboard,
        wishes: Wishes,
        changed: Callable[[], None],
        topics: Topics | None,
    ) -> None:
        """`changed`: another port takes part, or a port's names have changed. `topics`: those of the link."""
        self.definition = definition
        self.target = definition.target
        self.figures = Figures()
        self.since = time.time()
        self.topics = topics
        self._parts: dict[str, str] = {}
        if definition.channels:
            self._parts["channels"] = CONNECTING
        if topics is not None:
            self._parts["topics"] = CONNECTING
        self._errors: dict[str, str] = {}
        self.failures = 0
        self.is_peer = False
        self.port: ServerPort | PeerPort | None = None
        self._switchboard = switchboard
        self._wishes = wishes
        self._changed = changed
        self._wanted = definition.wanted_channels
        self._naming = Naming(definition.prefix.encode("latin-1"))
        self._bytes_in = self._bytes_out = 0
        self._streams: list[ByteStream] = []
        self._shards: ClusterShards | None = None
        self._welcome: asyncio.Future[int] | None = None
        self._heard_at = 0.0
        self._early: list[list[Any]] = []

    @property
    def bytes_in(self) -> int:
        shards = self._shards.bytes_in if self._shards is not None else 0
        return self._bytes_in + shards + sum(stream.bytes_in for stream in self._streams)

    @property
    def bytes_out(self) -> int:
        shards = self._shards.bytes_out if self._shards is not None else 0
        return self._bytes_out + shards + sum(stream.bytes_out for stream in self._streams)

    @property
    def dropped(self) -> int:
        """Messages that the link did not take."""
        return self.figures.dropped + (self.port.dropped if self.port is not None else 0)

    @property
    def state(self) -> str:
        """The worst of its parts'."""
        if self.definition.is_paused:
            return PAUSED
        states = set(self._parts.values())
        return DOWN if DOWN in states else CONNECTING if CONNECTING in states else UP

    @property
    def error(self) -> str:
        """The last one of what is not as it should be."""
        carriers = self.topics.carriers.values() if self.topics is not None else ()
        return next(iter(self._errors.values()), "") or next((each.error for each in carriers if each.error), "")

    def _see(self, part: str, state: str, error: str = "") -> None:
        before = self.state
        self._parts[part] = state
        if error and self._errors.get(part) != error:
            log.warning("The link %s to %s is down: %s", self.definition.name, self.target.shown, error)
        if error:
            self._errors[part] = error
        else:
            self._errors.pop(part, None)
        if self.state != before:
            self.since = time.time()
            if self.state == UP:
                log.info("The link %s to %s is up.", self.definition.name, self.target.shown)

    async def run(self) -> None:
        """Carry channels and topics until cancelled."""
        parts = [self._again("channels", self._follow)] if self.definition.channels else []
        if self.topics is not None:
            parts.append(self._again("topics", self._bring))
        await asyncio.gather(*parts)

    async def _again(self, part: str, follow: Callable[[], Awaitable[None]]) -> None:
        attempt = 0
        while True:
            try:
                await follow()
            except Exception as failure:
                text = str(failure) or type(failure).__name__
                if not isinstance(failure, BREAKS) and self._errors.get(part) != text:
                    log.exception("Unexpected failure of the link %s", self.definition.name)
                self.failures += 1
                attempt = 0 if self._parts[part] == UP else attempt + 1
                self._see(part, DOWN, text)
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])

    async def _bring(self) -> None:
        """Topics, from connecting to the end of a connection, which raises why."""
        assert self.topics is not None
        wire = await self.target.open(name=f"link:{self.definition.name}")
        bringing: asyncio.Future[None] | None = None
        try:
            far = await self._store_id(wire)
            is_store = bool(far)
            if not far and self.definition.direction == "both":
                far = await self._noted_id()
            far = far or await self._server_id(wire)
            bringing = asyncio.ensure_future(self.topics.run(wire, far, is_store=is_store))
            self._see("topics", UP)
            while not (bringing.done() or wire.ended.done()):
                await asyncio.wait([bringing, wire.ended], timeout=SIGN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not bringing.done():
                    async with asyncio.timeout(SILENCE_SECONDS):  # wait_for may lose a cancellation
                        await wire.ask(b"PING")
            for each in (bringing, wire.ended):
                if each.done():
                    each.result()
        finally:
            if bringing is not None:
                bringing.cancel()
                await asyncio.wait([bringing])
            await wire.close()

    async def _follow(self) -> None:
        """Connect, and carry channels until the connection ends, which raises why."""
        name = f"link:{self.definition.name}"
        self._early = []
        wire = await self.target.open(self._pushed, key=MARKERS, name=name)
        wires = [wire]
        tasks: list[asyncio.Future[Any]] = []
        try:
            self.is_peer = await self._is_store(wire)
            port: PeerPort | ServerPort
            if self.is_peer:
                port = await self._meet(wire)
            else:
                wires.append(await self.target.open(key=MARKERS, name=name))
                port = await self._server(wire, wires[1])
            self._streams = [each.stream for each in wires]
            self.port = port
            self._switchboard.join(port)
            tasks = [asyncio.ensure_future(port.outlet.run()), asyncio.ensure_future(self._stay(wire))]
            if self._shards is not None:
                tasks.append(asyncio.ensure_future(self._shards.run()))
            self._see("channels", UP)
            early, self._early = self._early, []
            self._pushed(early)
            self._changed()
            done, _ = await asyncio.wait([*(each.ended for each in wires), *tasks], return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            self._leave()
            self._bytes_in, self._bytes_out = self.bytes_in, self.bytes_out
            self._streams, self._shards = [], None
            for one in wires:
                await one.close()

    def _leave(self) -> None:
        port, self.port = self.port, None
        if port is not None:
            port.give_up()
            self.figures.dropped += port.dropped
            self._switchboard.leave(port)
            self._wishes.forget(port)
            self._changed()

    # -- meeting

    async def _is_store(self, wire: LinkWire) -> bool:
        """Return whether the other side is a store like this one; then its process with links runs, too."""
        deadline = time.monotonic() + _WELCOME_SECONDS
        while (found := await _joined(wire)) is not None:
            if found[0]:
                return True
            if time.monotonic() >= deadline:
                raise Silent("its process for links does not start")
            await asyncio.sleep(_JOIN_SECONDS)
        return False

    @staticmethod
    async def _store_id(wire: LinkWire) -> bytes:
        """Return the id of a store like this one; nothing otherwise."""
        found = await _joined(wire)
        return b"" if found is None else bytes(found[1])

    async def _noted_id(self) -> bytes:
        """Return the id of any other server: the one that the first link whose topics go both ways gave it."""
        wire = await self.target.open(key=SERVER_ID, name=f"link:{self.definition.name}")
        try:
            await wire.ask(b"SET", SERVER_ID, b"server:" + os.urandom(16).hex().encode(), b"NX")
            return bytes(await wire.ask(b"GET", SERVER_ID))
        finally:
            await wire.close()

    async def _server_id(self, wire: LinkWire) -> bytes:
        said: bytes = bytes(await wire.ask(b"INFO", b"server"))
        lines = dict(line.split(b":", 1) for line in said.splitlines() if b":" in line)
        return b"server:" + lines.get(b"run_id", self.target.shown.encode())

    async def _server(self, wire: LinkWire, saying: ServerWire) -> ServerPort:
        place = await self._server_id(wire)
        way = self.definition.direction
        port = ServerPort(self._switchboard, place, self._wanted, self._naming, way, self.figures)
        if self.target.is_cluster:
            name, see = f"link:{self.definition.name}", partial(self._see, "shards")
            self._shards = ClusterShards(self.target, name, self._naming, port.came, self.figures, see)
        port.begin(wire, saying, self._shards)
        return port

    async def _meet(self, wire: LinkWire) -> PeerPort:
        nonce = os.urandom(NONCE_BYTES)
        self._welcome = asyncio.get_running_loop().create_future()
        wire.subscribe([[b"SSUBSCRIBE", door_of(nonce)]])

        def say(frame: bytes) -> asyncio.Future[list[Any]]:
            return wire.send([[b"SPUBLISH", DOOR, nonce + frame]])

        hello = envelope.said(envelope.HELLO, origin=str(self._switchboard.origin), name=self.definition.name)
        await say(hello)
        async with asyncio.timeout(_WELCOME_SECONDS):
            origin = await self._welcome
        if origin == self._switchboard.origin:
            raise OSError("it leads to this store itself")
        self._say = say
        way = self.definition.direction
        return PeerPort(self._switchboard, origin, say, self.figures, self._wanted, self._naming, way)

    async def _stay(self, wire: LinkWire) -> None:
        """Signs of life, both ways."""
        self._heard_at = time.monotonic()
        while True:
            await asyncio.sleep(SIGN_SECONDS)
            if self.is_peer:
                await wire.send([[b"LINK", b"JOIN"]])
                await self._say(envelope.said(envelope.ALIVE))
            else:
                await wire.send([[b"PING"]])
                self._heard_at = time.monotonic()
            if time.monotonic() - self._heard_at > SILENCE_SECONDS:
                raise Silent("the other side has fallen silent")

    # -- what comes

    def _pushed(self, pushes: list[list[Any]]) -> None:
        port = self.port
        if isinstance(port, ServerPort):
            port.pushed(pushes)
            return
        for push in pushes:
            if push[0] == b"smessage" and len(push) == 3:
                self._framed(port, push)

    def _framed(self, port: PeerPort | None, push: list[Any]) -> None:
        frame = push[2]
        self._heard_at = time.monotonic()
        kind = envelope.kind_of(frame)
        if kind == envelope.WELCOME:
            if self._welcome is not None and not self._welcome.done():
                self._welcome.set_result(int(envelope.words_of(frame)["origin"]))
        elif kind in (envelope.WHO, envelope.BYE):
            raise Silent("its process for links was restarted")
        elif port is None:
            self._early.append(push)
        elif kind == envelope.DATA:
            port.framed(frame)
        elif kind == envelope.NAMES:
            self._wishes.hear(port, *names_of(envelope.words_of(frame)))
            self._changed()


async def _joined(wire: LinkWire) -> list[Any] | None:
    """Return whether its process with links listens, and the store's id; None if it is not a store like this one."""
    (reply,) = await wire.send([[b"LINK", b"JOIN"]])
    if isinstance(reply, Exception):
        if "unknown command" in str(reply).lower():
            return None
        raise reply
    return list(reply)
