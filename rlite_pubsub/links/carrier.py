"""Brings the entries of one topic from a source to a target, each exactly once, in their order.

A batch and the position behind it are one transaction of the target's, which fails if the position, or the topic, has
changed since it was looked at: so whatever is killed at whatever step, and however late a dead process's last words
arrive, nothing is there twice and nothing is left out. What was trimmed at the source before it could be brought over
is counted (law 8).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from rlite_pubsub.links.failing import BREAKS, CONNECTING, DOWN, RETRY_SECONDS, UP
from rlite_pubsub.links.link_wire import LinkWire, Request
from rlite_pubsub.links.position import OWN, SAME, Extent, Id, Position, key_of, parsed, spelled, stores_in
from rlite_pubsub.storage.failpoint import failpoint

log: Final = logging.getLogger("rlite_pubsub")

MOST_AT_ONCE: Final = 2000
FEWEST_AT_ONCE: Final = 16
BATCH_BYTES: Final = 1 << 20
BLOCK_MS: Final = b"2000"
ORIGIN: Final = b"link-origin"
"""The field that says where an entry with an id of the target's own comes from: store/topic/id."""

Open = Callable[[], Awaitable[LinkWire]]
Entry = tuple[bytes, list[bytes]]


class Circle(OSError):
    """The entries of the topic come from where they would go."""


class Refused(OSError):
    """The target does not take what a transaction has brought."""


class _Moved(Exception):
    """Somebody else has changed the position, or the topic: it is to be looked at again."""


class Carrier:
    """Of one topic of one link. `run` is its task."""

    def __init__(
        self, name: bytes, there: bytes, source: Open, target: Open, own: bytes, link: str, since: str, passes: bytes
    ) -> None:
        """`name` at the source, `there` at the target. `own` is this store's id, `passes` that of the store at the
        source."""
        self.name = name
        self.there = there
        self.state = CONNECTING
        self.error = ""
        self.entries = 0
        self.lost = 0
        self.lag = 0
        self.behind_since: float | None = None
        self._open_source = source
        self._open_target = target
        self._own = own
        self._passes = passes
        self._field = b"%b/%b" % (own, link.encode("latin-1"))
        self._since = since.encode()
        self._at_once = FEWEST_AT_ONCE
        self._seen = Extent()  # of the source, at the last look
        self._through: set[bytes] = set()  # stores that its entries come through
        self._wires: list[LinkWire] = []
        self._bytes_in = self._bytes_out = 0

    @property
    def bytes_in(self) -> int:
        """From the other server."""
        return self._bytes_in + sum(wire.stream.bytes_in for wire in self._wires if wire.stream.is_remote)

    @property
    def bytes_out(self) -> int:
        """To the other server."""
        return self._bytes_out + sum(wire.stream.bytes_out for wire in self._wires if wire.stream.is_remote)

    @property
    def lag_ms(self) -> int:
        """For how long something has been waiting."""
        return 0 if self.behind_since is None else max(0, int((time.time() - self.behind_since) * 1000))

    async def run(self) -> None:
        """Until cancelled."""
        attempt = 0
        while True:
            try:
                await self._carry()
            except (*BREAKS, ValueError) as failure:
                attempt = 0 if self.state == UP else attempt + 1
                text = str(failure) or type(failure).__name__
                if text != self.error:
                    log.warning("The topic %s is not brought over: %s", self.name.decode("latin-1"), text)
                self.state, self.error = DOWN, text
                self.behind_since = self.behind_since or time.time()
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])

    async def _carry(self) -> None:
        """From connecting to the end of a connection."""
        try:
            self._wires.append(await self._open_source())
            self._wires.append(await self._open_target())
            source, target = self._wires
            while True:
                try:
                    await self._follow(source, target)
                except _Moved:
                    continue
        finally:
            self._bytes_in, self._bytes_out = self.bytes_in, self.bytes_out
            wires, self._wires = self._wires, []
            for wire in wires:
                await wire.close()

    async def _follow(self, source: LinkWire, target: LinkWire) -> None:
        """From the position that the target says. Raises _Moved."""
        await target.ask(b"UNWATCH")
        known, extent = _looked(await target.send(self._look()))
        position = known or await self._beginning(source, extent)
        self.lost = position.lost
        reading = source.send(self._read(position.last))
        while True:
            entries, position = await self._taken(source, position, reading)
            self.state, self.error = UP, ""
            way = position.way
            if way == SAME and extent.last > position.last:
                way = OWN  # somebody else writes there
            following = position._replace(way=way, last=parsed(entries[-1][0]), passed=position.passed + len(entries))
            if following.last == self._seen.last:
                following = following._replace(passed=self._seen.added)
            failpoint("link-batch-read")
            changes = [[b"MULTI"], *self._adds(way, entries), self._note(following), [b"EXEC"]]
            batch = target.send(changes + self._look())
            reading = source.send(self._read(following.last))
            failpoint("link-batch-sent")
            replies = await batch
            self._check(replies[: len(changes)])
            failpoint("link-batch-done")
            self.entries += len(entries)
            self.lag = max(0, self._seen.added - following.passed)
            if not self.lag:
                self.behind_since = None
            known, extent = _looked(replies[len(changes) :])
            if known != following:
                raise _Moved
            position = following

    # -- the source

    def _read(self, last: Id) -> list[Request]:
        return [
            [b"HVALS", key_of(self.name)],
            [b"XINFO", b"STREAM", self.name],
            [b"XREAD", b"COUNT", b"%d" % self._at_once, b"STREAMS", self.name, spelled(last)],
        ]

    async def _taken(
        self, source: LinkWire, position: Position, reading: asyncio.Future[list[Any]]
    ) -> tuple[list[Entry], Position]:
        """The next entries, when there are any, and the position before them."""
        while True:
            chains, info, found = await reading
            for reply in (chains, found):
                if isinstance(reply, Exception):
                    raise reply
            self._through = stores_in(chains)
            if self._own in self._through:
                raise Circle("its entries come from this store: they would go round")
            self._seen = seen = Extent.of(info)
            if seen.last < position.last and seen.last > (0, 0):
                log.warning("The topic %s has begun anew.", self.name.decode("latin-1"))
                position = position._replace(way=OWN, last=(0, 0), passed=0)
                reading = source.send(self._read(position.last))
                continue
            if seen.removed > position.passed:
                lost = seen.removed - position.passed
                position = position._replace(passed=seen.removed, lost=position.lost + lost)
                self.lost = position.lost
                log.warning(
                    "%d entries of the topic %s were removed before they could be brought over.",
                    lost,
                    self.name.decode("latin-1"),
                )
            self.lag = max(0, seen.added - position.passed)
            entries: list[Entry] = next(iter(found.values())) if found else []
            if entries:
                self._size(entries)
                self.behind_since = self.behind_since or time.time()
                return entries, position
            self.state, self.error, self.lag, self.behind_since = UP, "", 0, None
            (waited,) = await source.send(
                [[b"XREAD", b"COUNT", b"1", b"BLOCK", BLOCK_MS, b"STREAMS", self.name, spelled(position.last)]]
            )
            if isinstance(waited, Exception):
                raise waited
            reading = source.send(self._read(position.last))

    def _size(self, entries: list[Entry]) -> None:
        """So many at a time as make a good transaction."""
        step = max(1, len(entries) // 8)
        sample = entries[::step]
        mean = sum(len(word) for _, words in sample for word in words) // len(sample) + 32
        self._at_once = min(max(BATCH_BYTES // mean, FEWEST_AT_ONCE), MOST_AT_ONCE, self._at_once * 4)

    async def _beginning(self, source: LinkWire, extent: Extent) -> Position:
        """Nothing was brought over yet."""
        seen = Extent.of((await source.send([[b"XINFO", b"STREAM", self.name]]))[0])
        way = SAME if extent.last == (0, 0) else OWN
        if self._since == b"$":
            return Position(way, seen.last, seen.added, 0)
        return Position(way, parsed(self._since), seen.removed, 0)

    # -- the target

    def _look(self) -> list[Request]:
        key = key_of(self.there)
        return [[b"WATCH", key, self.there], [b"HGET", key, self._field], [b"XINFO", b"STREAM", self.there]]

    def _adds(self, way: bytes, entries: list[Entry]) -> list[Request]:
        there = self.there
        if way == SAME:
            return [[b"XADD", there, id, *words] for id, words in entries]
        origin = b"%b/%b/" % (self._passes or self._own, self.name)
        return [[b"XADD", there, b"*", *words, ORIGIN, origin + id] for id, words in entries]

    def _note(self, position: Position) -> Request:
        stores = self._through | {self._passes or self._own}
        return [b"HSET", key_of(self.there), self._field, position.value(stores)]

    @staticmethod
    def _check(replies: list[Any]) -> None:
        """Raises _Moved, Refused, and what a request was refused with."""
        for reply in replies[:-1]:
            if isinstance(reply, Exception):
                raise reply
        done = replies[-1]
        if done is None:
            raise _Moved
        if isinstance(done, Exception):
            raise done
        for reply in done:
            if isinstance(reply, Exception):
                raise Refused(f"the target refuses an entry: {reply}")


def _looked(replies: list[Any]) -> tuple[Position | None, Extent]:
    for reply in replies[:-1]:
        if isinstance(reply, Exception):
            raise reply
    value = replies[-2]
    return None if value is None else Position.of(value), Extent.of(replies[-1])
