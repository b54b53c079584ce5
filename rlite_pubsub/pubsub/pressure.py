"""Slow readers: what piles up for them, the limits on it, and what happens at a limit.

Law 7: publishers never wait for subscribers. Law 8: what is lost is said.
At a limit a subscriber is disconnected (Redis's rule) or, with `slow-subscriber-policy drop-oldest`, loses its oldest
messages and is notified by a `gap` message for each channel. Other sessions are always disconnected.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from rlite_pubsub.pubsub.backlog import Backlog
from rlite_pubsub.pubsub.spiller import Spiller
from rlite_pubsub.storage.agenda import SPILL, Agenda
from rlite_pubsub.storage.errors import StoreError, StoreHeld

log: Final = logging.getLogger("rlite_pubsub")

FIXED_BUFFER_BYTES: Final = 16 * 1024
"""Of what one turn says to a client, so much does not count: Redis has it in a buffer that its limits leave out."""

MAX_UNAUTHENTICATED_BYTES: Final = 1024
"""Who may only log in gets no more than short errors: whoever does not take those is cut off (CVE-2025-21605)."""

_NO_LIMIT: Final = 1 << 60
"""More bytes than there are, and yet a number of the machine's."""

MAX_DROPPED_BYTES: Final = 1024 * 1024
"""Dropped at a time: each message is looked at, and the other sessions wait meanwhile."""
MOST_IN_MEMORY_BYTES: Final = 32 * 1024 * 1024
"""While another process is in the middle of writing, this much stays in memory for each session, as much as Redis
allows."""
WARNING_SECONDS: Final = 1.0
"""A store that stays full is mentioned so often, not once a turn."""


_BEYOND_LIMIT: Final = "more than client-output-buffer-limit allows"
Note: TypeAlias = Callable[[str, str, tuple[bytes, ...], int], None]


class Limit(NamedTuple):
    """A limit of what may wait for a client: `hard_bytes` at once, `soft_bytes` for `soft_seconds`. 0 is no limit."""

    hard_bytes: int
    soft_bytes: int
    soft_seconds: int


class Limits(NamedTuple):
    """The limits of what may wait, and what happens beyond them."""

    spill_threshold_bytes: int
    normal: Limit
    pubsub: Limit
    """Of those who hold names."""
    are_set: bool
    """The user has set them: they are obeyed by the byte, as Redis does."""
    drops_oldest: bool


class Counts:
    """Counters of bytes written to peers, and of what limits have done."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again from nothing."""
        self.output_bytes = 0
        self.writes = 0
        self.disconnections = 0
        self.gaps = 0  # gap messages sent
        self.dropped_messages = 0  # what they told of


class Speaker(Protocol):
    """The hub, which reports what piles up."""

    @property
    def framing(self) -> dict[int, int] | None:
        """Bytes of this turn's parts, by their ids, that are not payload; None while nobody is slow."""

    def weigh_parts(self, is_anybody_slow: bool) -> None:
        """Keep `framing`, or none."""

    @property
    def agenda(self) -> Agenda: ...


class WeighedFeed(Protocol):
    """A durable subscriber's feed. The part of its mailbox that is being written is not weighed: it has limits of its
    own."""

    @property
    def chunk_bytes(self) -> int: ...

    @property
    def unread_bytes(self) -> int: ...


class Reader(Protocol):
    """A session whose peer may be slower than its publishers: at a socket, in this process or at HTTP."""

    id: int
    protocol: int
    closing: bool
    """It is closed once its peer has taken all."""
    authenticated: bool

    @property
    def called(self) -> bytes: ...

    @property
    def feed(self) -> WeighedFeed | None: ...

    @property
    def follows(self) -> object: ...

    @property
    def address(self) -> str: ...

    @property
    def holds_names(self) -> bool: ...

    def flush(self) -> None: ...

    def rouse(self) -> None: ...

    def stalled(self) -> None: ...

    def drained(self) -> None: ...

    def cut(self) -> None: ...

    def close_now(self) -> None: ...


class Pressure:
    """All slow readers of one process."""

    def __init__(
        self, limits: Limits, counts: Counts, hub: Speaker, spiller: Spiller, clock: Callable[[], float]
    ) -> None:
        self.counts = counts
        self.at_once_bytes = _NO_LIMIT  # what a single turn may say to anybody without a look at its limit
        self.limits_turns = False  # whether there is such a limit
        self._hub = hub
        self._spiller = spiller
        self._clock = clock
        self._slow: dict[int, tuple[Reader, Backlog]] = {}  # by session id
        self._warned_at = 0.0  # of a full store
        self._note: Note = _nobody_notes
        self.obey(limits)
        hub.agenda.at(SPILL, self.end_turn)

    def obey(self, limits: Limits) -> None:
        """Apply these limits from now on."""
        self._limits = limits
        self._spiller.spill_beyond(limits.spill_threshold_bytes)
        hard = [limit.hard_bytes for limit in (limits.normal, limits.pubsub) if limit.hard_bytes]
        self.limits_turns = limits.are_set and bool(hard)
        self.at_once_bytes = min(hard) if self.limits_turns else _NO_LIMIT

    def note_by(self, note: Note) -> None:
        """Have `note` called with (code, text, subject, times) whenever a limit has done something to a reader."""
        self._note = note

    def begin(self, reader: Reader) -> Backlog:
        """Begin a backlog: the peer did not take everything."""
        self._hub.weigh_parts(True)
        backlog = self._spiller.begin(reader.id, self._clock())
        self._slow[reader.id] = reader, backlog
        return backlog

    def end(self, backlog: Backlog) -> None:
        """End a backlog: the peer has taken everything, or is gone."""
        del self._slow[backlog.session_id]
        if not self._slow:
            self._hub.weigh_parts(False)
        try:
            self._spiller.end(backlog)
        except StoreError as failure:
            log.warning("Can't remove the mailbox of session %d: %s", backlog.session_id, failure)

    def pile_up(self, reader: Reader, backlog: Backlog, parts: list[bytes]) -> None:
        """Put parts behind the backlog."""
        framing = self._hub.framing or {}
        for part in parts:
            self._spiller.append(backlog, part, framing.get(id(part), 0))
        if self._spiller.due:
            self._hub.agenda.due |= SPILL
        self._check(reader, backlog)

    def pile_up_rest(self, reader: Reader, backlog: Backlog, rest: memoryview) -> None:
        """Put the rest of a part that the socket has begun to take at the front of a new backlog."""
        self._spiller.append(backlog, rest, 0)
        if self._spiller.due:
            self._hub.agenda.due |= SPILL
        self._check(reader, backlog)

    def refill(self, reader: Reader, backlog: Backlog) -> bool:
        """The head is written: bring what comes next into it. False if the session had to be closed as that failed."""
        if backlog.loss is not None:
            self._tell_loss(reader, backlog)
            return True
        try:
            self._spiller.refill(backlog)
        except StoreError as failure:
            log.warning("Client %s closed: its spilled messages can't be read: %s", reader.address, failure)
            reader.close_now()
            return False
        return True

    def end_turn(self) -> None:
        """Move tails that have grown too long to disk."""
        if not self._slow:
            return
        if self._hub.framing:
            self._hub.framing.clear()
        if self._spiller.due:
            try:
                self._spiller.spill()
            except StoreHeld:
                self._relieve(MOST_IN_MEMORY_BYTES, "and another process held the store, which could not take them")
            except StoreError as failure:
                self._warn_of_full_store(failure)
                self._relieve(self._spiller.threshold_bytes, "and the store could not take them: it was full")

    def check_all(self) -> None:
        """Soft limits are a matter of time, and a full store may have room again: called by the cron."""
        with contextlib.suppress(StoreError):
            self._spiller.settle()
        for reader, backlog in list(self._slow.values()):
            if backlog.session_id in self._slow:
                self._check(reader, backlog)

    @property
    def spilled_bytes(self) -> int:
        """All that waits on disk."""
        return self._spiller.disk_bytes

    @property
    def spilled_sessions(self) -> int:
        """How many sessions have something on disk."""
        return sum(1 for backlog in self._spiller.backlogs.values() if backlog.disk_bytes)

    @property
    def threshold_bytes(self) -> int:
        """How much of a session's backlog may be in memory."""
        return self._spiller.threshold_bytes

    def refuses(self, reader: Reader, size_bytes: int) -> bool:
        """Return whether a limit that the user has set forbids what a single turn has to send; the reader is closed
        then."""
        limit = self._limits.pubsub if reader.holds_names else self._limits.normal
        if not limit.hard_bytes or size_bytes - FIXED_BUFFER_BYTES - _unweighed_bytes(reader) < limit.hard_bytes:
            return False
        self._disconnect(reader, size_bytes)
        return True

    def _weight(self, backlog: Backlog) -> int:
        """Return what counts towards the limit: every byte, as in Redis, if the user has set it. Our own 1 GB means 1
        GB of messages, so their overhead on disk does not count."""
        return backlog.total_bytes if self._limits.are_set else backlog.weight_bytes

    def _check(self, reader: Reader, backlog: Backlog) -> None:
        limit = self._limits.pubsub if reader.holds_names else self._limits.normal
        if not reader.authenticated and backlog.total_bytes > MAX_UNAUTHENTICATED_BYTES:
            self._disconnect(reader, backlog.total_bytes)
            return
        weight = self._weight(backlog) - _unweighed_bytes(reader)
        over_hard = limit.hard_bytes and weight >= limit.hard_bytes
        over_soft_s = backlog.soft_limit_s(0 < limit.soft_bytes <= weight, self._clock())
        if over_hard or over_soft_s > limit.soft_seconds:
            self._apply_policy(reader, backlog, limit.hard_bytes if over_hard else limit.soft_bytes)

    def _apply_policy(
        self, reader: Reader, backlog: Backlog, limit_bytes: int, why: str = _BEYOND_LIMIT
    ) -> None:
        if reader.holds_names and self._limits.drops_oldest:
            self._drop_oldest(reader, backlog, limit_bytes)
            return
        self._disconnect(reader, backlog.total_bytes, why)

    def _disconnect(self, reader: Reader, waiting_bytes: int, why: str = _BEYOND_LIMIT) -> None:
        self.counts.disconnections += 1
        log.warning(
            "Client id=%d addr=%s closed for overcoming of output buffer limits: %d bytes wait for it.",
            reader.id,
            reader.address,
            waiting_bytes,
        )
        told = f"{waiting_bytes:,} bytes waited for it, {why}"
        self._note("cut_off", told, _who(reader), 1)
        reader.close_now()

    def _drop_oldest(self, reader: Reader, backlog: Backlog, limit_bytes: int) -> None:
        """Drop more than what is beyond the limit, so that not every message has to drop one."""
        if backlog.loss is None:
            log.warning(
                "Client id=%d addr=%s loses its oldest messages: slow-subscriber-policy is drop-oldest.",
                reader.id,
                reader.address,
            )
        target = limit_bytes - min(limit_bytes // 4, MAX_DROPPED_BYTES)
        while self._weight(backlog) > target and (backlog.disk_bytes or backlog.tail):
            told = backlog.loss.messages if backlog.loss is not None else 0
            if backlog.disk_bytes:
                try:
                    backlog.lose_disk(self._spiller.store.take(backlog.session_id, 1), reader.protocol)
                except StoreError as failure:
                    log.warning("Client %s closed: its spilled messages can't be read: %s", reader.address, failure)
                    reader.close_now()
                    return
            else:
                backlog.lose_tail(reader.protocol)
            if backlog.loss is not None:
                self.counts.dropped_messages += backlog.loss.messages - told
                about = "It did not read, and slow-subscriber-policy is drop-oldest"
                self._note("messages_dropped", about, _who(reader), backlog.loss.messages - told)
        if backlog.loss is not None and backlog.loss.size_bytes >= max(limit_bytes, self._spiller.threshold_bytes):
            self._disconnect(reader, backlog.total_bytes)

    def _tell_loss(self, reader: Reader, backlog: Backlog) -> None:
        loss = backlog.tell_loss(reader.protocol)
        self.counts.gaps += loss.gaps
        log.warning(
            "Client id=%d addr=%s lost its %d oldest messages, and will be notified.",
            reader.id,
            reader.address,
            loss.messages,
        )

    def _relieve(self, threshold: int, why: str) -> None:
        """The store takes no more: those whose tails are too long fall under the policy at once."""
        for reader, backlog in list(self._slow.values()):
            if backlog.session_id in self._slow and backlog.tail_bytes > threshold:
                limit_bytes = max(self._weight(backlog) - backlog.tail_bytes, 0)
                self._apply_policy(reader, backlog, limit_bytes, why)

    def _warn_of_full_store(self, failure: StoreError) -> None:
        now = self._clock()
        if now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            log.warning("Can't spill to the store: %s", failure)


def _nobody_notes(code: str, text: str, subject: tuple[bytes, ...], times: int) -> None:
    """Do nothing: there is no store that would keep it."""


def _who(reader: Reader) -> tuple[bytes, ...]:
    """Return what is the same when it comes back: its name, or its host."""
    name = reader.called
    return (name,) if name else (reader.address.rpartition(":")[0].encode(errors="surrogateescape"),)


def _unweighed_bytes(reader: Reader) -> int:
    """Return the part of its backlog that is not weighed: a chunk of a durable subscriber's mailbox, after which the
    next one is sent."""
    return reader.feed.chunk_bytes if reader.feed is not None else 0
