"""Brings the entries of one topic from a source to a target, each exactly once, in their order.

A batch and the position behind it are one transaction of the target's, which fails if the position has changed since it
was looked at (or the topic, as long as only the link writes to it): so whatever is killed at whatever step, and however
late a dead process's last words arrive, nothing is there twice and nothing is left out. What was trimmed at the source
before it could be brought over is counted (law 8).

A topic that goes both ways has two carriers. Each entry says where it was appended, never goes back to there, and is
taken once by each target, whichever ways lead to it: so the same holds for two links between two stores, and for rings.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from rlite_pubsub.links.entry_bytes import Entry, pack_entries
from rlite_pubsub.links.failing import BREAKS, CONNECTING, DOWN, RETRY_SECONDS, UP
from rlite_pubsub.links.link_wire import LinkWire, Request
from rlite_pubsub.links.position import (
    ALIKE,
    NOWHERE,
    ORIGIN,
    OWN,
    SAME,
    Extent,
    Id,
    Origins,
    Position,
    alike_up_to,
    key_of,
    origin_in,
    parsed,
    spelled,
    stores_in,
)
from rlite_pubsub.storage.failpoint import failpoint

log: Final = logging.getLogger("rlite_pubsub")

MOST_AT_ONCE: Final = 2000
FEWEST_AT_ONCE: Final = 16
BATCH_BYTES: Final = 1 << 20
BLOCK_MS: Final = b"2000"

Open = Callable[[], Awaitable[LinkWire]]


class Circle(OSError):
    """The entries of the topic come from where they would go."""


class Refused(OSError):
    """The target does not take what a transaction has brought."""


class _Moved(Exception):
    """Somebody else has changed the position, or the topic: it is to be looked at again."""


class Leg(NamedTuple):
    """From where to where a topic is brought."""

    name: bytes
    """At the source."""
    there: bytes
    """At the target."""
    source: bytes
    """Which store, or server, is there."""
    target: bytes
    is_out: bool
    """Away from this store."""
    is_one_way: bool
    """Otherwise the same link brings back what is appended at the target."""
    is_to_store: bool
    """The target is a store like this one, which takes many entries in one command."""


class _TargetView(NamedTuple):
    """What a target has said of itself, behind which its next transaction stands."""

    known: Position | None
    extent: Extent
    origins: Origins


class Carrier:
    """Of one topic of one link, in one direction. `run` is its task."""

    def __init__(self, leg: Leg, source: Open, target: Open, field: bytes, since: str) -> None:
        """`field` has the position, beside each topic that the link brings somewhere."""
        self.leg = leg
        self.state = CONNECTING
        self.error = ""
        self.entries = 0
        self.lost = 0
        self.lag = 0
        self.behind_since: float | None = None
        self._open_source = source
        self._open_target = target
        self._field = field
        self._since = since.encode()
        self._at_once = FEWEST_AT_ONCE
        self._seen = Extent()  # of the source, at the last look
        self._is_anew = False  # the source has started over, and the target does not know it yet
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
        """Carry entries until cancelled; connect again whenever a connection breaks."""
        attempt = 0
        while True:
            try:
                await self._carry()
            except Exception as failure:
                attempt = 0 if self.state == UP else attempt + 1
                text = str(failure) or type(failure).__name__
                if text != self.error:
                    is_ours = not isinstance(failure, (*BREAKS, ValueError))
                    log.warning("The topic %s is not brought over: %s", self._shown, text, exc_info=is_ours)
                self.state, self.error = DOWN, text
                self.behind_since = self.behind_since or time.time()
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])

    async def _carry(self) -> None:
        """Connect, and carry entries until the connection ends."""
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
        """Carry entries from the target's position on. Raises _Moved."""
        await target.ask(b"UNWATCH")
        look = self._looked(await target.send(self._look(is_own=False)))
        known = look.known
        position = known or await self._beginning(source, look.extent)
        if not self.leg.is_one_way:
            position = position._replace(way=OWN)
        if position.way == OWN:  # from now on others may write to the topic there, but not to the position
            await target.ask(b"UNWATCH")
            look = self._looked(await target.send(self._look(is_own=True)))
            if look.known != known:
                raise _Moved
        self.lost = position.lost
        reading = source.send(self._read(position.last))
        while True:
            entries, position = await self._taken(source, position, reading)
            self.state, self.error = UP, ""
            way = position.way
            if way == SAME and look.extent.last > position.last:
                way = OWN  # somebody else writes there
            following = position._replace(way=way, last=parsed(entries[-1][0]), passed=position.passed + len(entries))
            if following.last == self._seen.last:
                following = following._replace(passed=self._seen.added)
            failpoint("link-batch-read")
            adds = entries if way == SAME else self._own(entries, look.origins)
            changes = [[b"MULTI"], *self._additions(adds), self._note(following, look), [b"EXEC"]]
            batch = target.send(changes + self._look(is_own=way == OWN))
            reading = source.send(self._read(following.last))
            failpoint("link-batch-sent")
            replies = await batch
            self._check(replies[: len(changes)])
            failpoint("link-batch-done")
            self._is_anew = False
            self.entries += len(adds)
            self.lag = max(0, self._seen.added - following.passed)
            if not self.lag:
                self.behind_since = None
            look = self._looked(replies[len(changes) :])
            if look.known != following:
                raise _Moved
            position = following

    # -- the source

    def _read(self, last: Id) -> list[Request]:
        name = self.leg.name
        return [
            [b"XINFO", b"STREAM", name],
            [b"XREAD", b"COUNT", b"%d" % self._at_once, b"STREAMS", name, spelled(last)],
            [b"HVALS", key_of(name)],  # last: of every entry that was read it is known which way it has come
        ]

    async def _taken(
        self, source: LinkWire, position: Position, reading: asyncio.Future[list[Any]]
    ) -> tuple[list[Entry], Position]:
        """Return the next entries, when there are any, and the position before them."""
        while True:
            info, found, chains = await reading
            for reply in (chains, found):
                if isinstance(reply, Exception):
                    raise reply
            self._through = stores_in(chains)
            if self.leg.is_one_way and self.leg.target in self._through:
                raise Circle("its entries come from where the link leads: they would go in circles")
            self._seen = seen = Extent.of(info)
            if seen.last < position.last and seen.last > NOWHERE:
                log.warning("The topic %s has started over.", self._shown)
                position = position._replace(way=OWN, last=NOWHERE, passed=0)
                self._is_anew = True
                reading = source.send(self._read(position.last))
                continue
            if seen.removed > position.passed:
                lost = seen.removed - position.passed
                position = position._replace(passed=seen.removed, lost=position.lost + lost)
                self.lost = position.lost
                log.warning(
                    "%d entries of the topic %s were removed before they could be brought over.",
                    lost,
                    self._shown,
                )
            self.lag = max(0, seen.added - position.passed)
            entries: list[Entry] = next(iter(found.values())) if found else []
            if entries:
                self._size(entries)
                self.behind_since = self.behind_since or time.time()
                return entries, position
            self.state, self.error, self.lag, self.behind_since = UP, "", 0, None
            (waited,) = await source.send(
                [[b"XREAD", b"COUNT", b"1", b"BLOCK", BLOCK_MS, b"STREAMS", self.leg.name, spelled(position.last)]]
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
        name = self.leg.name
        fields = [self._field, ALIKE + self._field]
        info, came = await source.send([[b"XINFO", b"STREAM", name], [b"HMGET", key_of(name), *fields]])
        seen = Extent.of(info)
        way = SAME if extent.last == NOWHERE else OWN
        if isinstance(came, Exception):
            raise came
        alike = None if self.leg.is_one_way else alike_up_to(*came)
        if alike is not None:  # up to there they were brought the other way, and don't say so
            return Position(OWN, alike, seen.added if alike == seen.last else seen.removed, 0)
        if self._since == b"$":
            return Position(way, seen.last, seen.added, 0)
        return Position(way, parsed(self._since), seen.removed, 0)

    @property
    def _shown(self) -> str:
        return self.leg.name.decode("latin-1")

    # -- the target

    def _look(self, *, is_own: bool) -> list[Request]:
        there = self.leg.there
        key = key_of(there)
        if is_own:
            return [[b"WATCH", key], [b"HGETALL", key], [b"XINFO", b"STREAM", there]]
        return [[b"WATCH", key, there], [b"HGETALL", key], [b"XINFO", b"STREAM", there]]

    def _looked(self, replies: list[Any]) -> _TargetView:
        for reply in replies[:-1]:
            if isinstance(reply, Exception):
                raise reply
        fields = replies[-2]
        value = fields.get(self._field)
        known = None if value is None else Position.of(value)
        return _TargetView(known, Extent.of(replies[-1]), Origins(fields))

    def _additions(self, adds: list[Entry]) -> list[Request]:
        """Return the requests that append these."""
        there = self.leg.there
        if not self.leg.is_to_store:
            return [[b"XADD", there, id, *words] for id, words in adds]
        return [[b"TOPIC.APPEND", there, pack_entries(adds)]] if adds else []

    def _own(self, entries: list[Entry], origins: Origins) -> list[Entry]:
        """Return those that do not come from the target, and are not there yet, with ids of the target's; each says
        where it was appended."""
        leg = self.leg
        here = b"%b/%b" % (leg.source, leg.name)
        back = leg.target + b"/"
        if self._is_anew:
            origins.forget(here)
        adds: list[Entry] = []
        for id, words in entries:
            found = origin_in(words)
            if found is None:
                if origins.pass_by(here, parsed(id)):
                    adds.append((b"*", [*words, ORIGIN, b"%b/%b" % (here, id)]))
            elif not found[0].startswith(back) and origins.pass_by(*found):
                adds.append((b"*", words))
        return adds

    def _note(self, position: Position, look: _TargetView) -> Request:
        value = position.value(self._through | {self.leg.source})
        note = [b"HSET", key_of(self.leg.there), self._field, value, *look.origins.changes()]
        if look.known is not None and look.known.way == SAME and position.way == OWN:
            note += [ALIKE + self._field, spelled(look.known.last)]
        return note

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
