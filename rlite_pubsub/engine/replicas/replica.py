"""One replica that is attached to this server, and what it has said of itself."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlite_pubsub.storage.commons.replica_stream import ReplicaRecord

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client

WAITS, SENDING, ONLINE = 0, 1, 2
"""How far it is: its file is prepared, or sent, or it is sent what comes behind it."""
STATES: Final = ("wait_bgsave", "send_bulk", "online")
REPORTED_MS: Final = 30_000
"""For so long its server's word on it counts."""
NAME_BYTES: Final = 8


@dataclass
class Introduction:
    """What a client says with REPLCONF before it becomes a replica."""

    port: int = 0
    address: bytes = b""
    """Where it is to be reached; empty: where it comes from."""
    takes_marked_files: bool = False
    """capa eof: a file whose size is not known before."""
    knows_histories: bool = False
    """capa psync2: it is told the history's id with +CONTINUE."""

    only_functions: bool = False
    """rdb-filter-only: who asks for a file alone wants no keys."""

    def want_only(self, *, functions: bool) -> None:
        """REPLCONF rdb-filter-only."""
        self.only_functions = functions

    def listen_on(self, port: int) -> None:
        """REPLCONF listening-port."""
        self.port = port

    def be_at(self, address: bytes) -> None:
        """REPLCONF ip-address."""
        self.address = address

    def be_able_to(self, what: bytes) -> None:
        """REPLCONF capa; what is not known is passed over."""
        self.takes_marked_files = self.takes_marked_files or what.lower() == b"eof"
        self.knows_histories = self.knows_histories or what.lower() == b"psync2"


class Replica:
    """Attached until its connection ends."""

    def __init__(
        self, session: Client, about: Introduction, sent: int, now: float, *, says_how_far: bool
    ) -> None:
        """`sent`: it has the stream up to here. `says_how_far`: it acknowledges, as who said PSYNC does."""
        self.session = session
        self.name = secrets.token_bytes(NAME_BYTES)
        self.about = about
        self.says_how_far = says_how_far
        self.state = WAITS
        self.history = b""
        """In which its offsets are."""
        self.sent = sent
        self.acknowledged = 0
        self.acknowledged_at = now
        """By our stopwatch: when it was heard last."""
        self.seen_ms = 0
        self.waits_for_word = False
        """Its file was marked at its end, and what follows would be mixed with that: so it has to say that it is
        read."""
        self.was_asked = False
        """It was sent a request to acknowledge, and somebody may wait for that."""
        self.behind_since: float | None = None
        """It has been so far behind that it may not be for long."""

    @property
    def address(self) -> bytes:
        """Its IP address, or what it said instead."""
        if self.about.address:
            return self.about.address
        return self.session.address.rpartition(":")[0].strip("[]").encode()

    def join(self, history: bytes) -> None:
        """Note that its offsets are in this history."""
        self.history = history

    def begin_file(self) -> None:
        """Note that a process sends it a file."""
        self.state = SENDING

    def end_file(self, sent: int, now_ms: int, *, is_marked: bool) -> None:
        """Note that it was sent the file, which has everything up to this offset: that is its first sign of life."""
        self.sent = sent
        self.seen_ms = now_ms
        self.waits_for_word = is_marked
        if not is_marked:
            self.state = ONLINE

    def go_on_from(self, offset: int, now_ms: int) -> None:
        """Note that it has everything up to here."""
        self.sent = self.acknowledged = offset
        self.seen_ms = now_ms
        self.state = ONLINE

    def acknowledge(self, offset: int, now: float, now_ms: int) -> bool:
        """It says that it has executed all up to here. Whether it was asked."""
        self.acknowledged = max(self.acknowledged, offset)
        self.acknowledged_at, self.seen_ms = now, now_ms
        if self.waits_for_word:
            self.waits_for_word = False
            self.state = ONLINE
        was_asked, self.was_asked = self.was_asked, False
        return was_asked

    def has_sent(self, size: int, *, asks: bool) -> None:
        """Note that it was sent so much more; `asks`: with a request to acknowledge."""
        self.sent += size
        self.was_asked = self.was_asked or asks

    def fall_behind(self, since: float | None) -> None:
        """Note since when it has been far behind; None: it is not."""
        self.behind_since = since

    def record(self, now_ms: int, most_bytes: int, subscriber: int) -> ReplicaRecord:
        """As it is reported to other processes."""
        return ReplicaRecord(
            self.sent,
            most_bytes,
            self.acknowledged,
            self.seen_ms,
            now_ms + REPORTED_MS,
            subscriber,
            self.about.port,
            self.state,
            self.address,
        )
