"""Entries of closed segments that other members have, for as long as a subscriber here may want them next.

Promises:
 - The event loop does not wait for another member: who needs entries that are not here learns it by `SegmentMiss`,
   before anything was changed; a thread fetches them, and the request is tried again when they are here.
 - Entries of a closed segment do not change, so a piece that was fetched once serves all subscribers. One that was
   deleted there (XDEL) may be popped until the piece goes, `KEPT_S` later.
 - A member that does not answer is an error for those who need it (`-CLUSTERDOWN`, on which cluster clients try again),
   and nobody's place has moved.
"""

from __future__ import annotations

import logging
from functools import partial
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk, ChunkSlice

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.engine.waits.waiter import CallFromThread
    from rlite_pubsub.storage.topics.entry_ids import Id

log: Final = logging.getLogger("rlite_pubsub")

KEPT_S: Final = 10.0
RETRY_S: Final = 0.2
MAX_BYTES: Final = 64 << 20
AT_ONCE: Final = 1000
AT_ONCE_BYTES: Final = 1 << 20
"""About so many entries come in one piece, even if fewer are asked for: the others will be, next."""
FETCHING: Final = Blocked()


class FetchedPiece(NamedTuple):
    """The entries of a segment up to an id."""

    up_to: Id
    chunk: Chunk | None


class Fetch(Protocol):
    """Asks whichever member has a segment for its entries after an id. In any thread. Raises OSError, and what the
    member refuses as CommandError."""

    def __call__(self, name: bytes, after: Id, count: int) -> FetchedPiece: ...


class SegmentMiss(Exception):
    """Entries have to be fetched from another member first. The code that raises it has changed nothing."""

    def __init__(self, name: bytes, after: Id, count: int) -> None:
        super().__init__(f"entries of {name!r} are to be fetched")
        self.name = name
        self.after = after
        self.count = count


class _Held(NamedTuple):
    after: Id
    piece: FetchedPiece
    until: float


class SegmentPieces:
    """Those of one process."""

    def __init__(self, call_later: CallLater, call_from_thread: CallFromThread | None) -> None:
        self.fetch: Fetch | None = None
        """None: nobody here talks to other members."""
        self._call_later = call_later
        self._call_from_thread = call_from_thread
        self._held: dict[bytes, list[_Held]] = {}  # oldest first, of each segment
        self._failed: dict[tuple[bytes, Id], tuple[float, bytes]] = {}
        self._waiting: dict[tuple[bytes, Id], list[Client]] = {}  # for what is being fetched
        self._purges = False

    def fetch_by(self, fetch: Fetch) -> None:
        """Have other members' entries fetched so."""
        self.fetch = fetch

    def get(self, name: bytes, after: Id, count: int) -> tuple[list[ChunkSlice], Id]:
        """Return at most `count` of a segment's next entries, and up to which id they are all of them. Raises
        SegmentMiss, and CommandError if they could not be had just now."""
        for held in self._held.get(name, ()):
            if held.after <= after < held.piece.up_to:
                return _part(held.piece, after, count)
        failed = self._failed.get((name, after))
        if failed is not None and monotonic() < failed[0]:
            raise CommandError(failed[1])
        raise SegmentMiss(name, after, count)

    def park(self, session: Client, miss: SegmentMiss) -> None:
        """Hold a request, to be handed in again when the entries are here, or can't be had."""
        session.wait_for(FETCHING)
        key = miss.name, miss.after
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(session)
            return
        self._waiting[key] = [session]
        Thread(target=self._run, args=(miss,), name="rlite-segment", daemon=True).start()

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        for waiting in self._waiting.values():
            if session in waiting:
                waiting.remove(session)

    def _run(self, miss: SegmentMiss) -> None:
        """In a thread."""
        assert self.fetch is not None and self._call_from_thread is not None
        try:
            done = partial(self._keep, miss, self.fetch(miss.name, miss.after, max(miss.count, AT_ONCE)))
        except CommandError as refusal:
            done = partial(self._fail, miss, refusal.text)
        except OSError as failure:
            about = " ".join(str(failure).split()) or type(failure).__name__
            text = f"CLUSTERDOWN the member that has the next values does not answer: {about}"
            done = partial(self._fail, miss, text.encode(errors="backslashreplace"))
        except Exception as failure:
            log.exception("Unexpected failure while entries of a segment were fetched")
            done = partial(self._fail, miss, b"ERR " + repr(failure).encode(errors="backslashreplace"))
        self._call_from_thread(done)

    def _keep(self, miss: SegmentMiss, piece: FetchedPiece) -> None:
        held = self._held.setdefault(miss.name, [])
        held.append(_Held(miss.after, piece, monotonic() + KEPT_S))
        self._make_room()
        self._purge_later()
        self._wake(miss)

    def _fail(self, miss: SegmentMiss, text: bytes) -> None:
        self._failed[miss.name, miss.after] = monotonic() + RETRY_S, text
        self._purge_later()
        self._wake(miss)

    def _wake(self, miss: SegmentMiss) -> None:
        for session in self._waiting.pop((miss.name, miss.after), ()):
            if session.blocked is FETCHING:
                session.go_on()

    def _make_room(self) -> None:
        """Let the oldest pieces go, but not the newest, which somebody waits for."""
        pieces = sorted((held.until, name) for name, each in self._held.items() for held in each)
        size = sum(_size(held) for each in self._held.values() for held in each)
        for _, name in pieces[:-1]:
            if size <= MAX_BYTES:
                break
            size -= _size(self._held[name].pop(0))

    def _purge_later(self) -> None:
        if not self._purges:
            self._purges = True
            self._call_later(KEPT_S, self._purge)

    def _purge(self) -> None:
        now = monotonic()
        held = {name: [one for one in each if one.until > now] for name, each in self._held.items()}
        self._held = {name: each for name, each in held.items() if each}
        self._failed = {key: failed for key, failed in self._failed.items() if failed[0] > now}
        self._purges = False
        if self._held or self._failed:
            self._purge_later()


def _size(held: _Held) -> int:
    return 0 if held.piece.chunk is None else len(held.piece.chunk)


def _part(piece: FetchedPiece, after: Id, count: int) -> tuple[list[ChunkSlice], Id]:
    chunk = piece.chunk
    start = 0 if chunk is None else chunk.place_behind(entry_ids.pack(after))
    if chunk is None or start == chunk.count:
        return [], piece.up_to
    stop = min(start + count, chunk.count)
    up_to = piece.up_to if stop == chunk.count else entry_ids.unpack(chunk.id(stop - 1))
    return [ChunkSlice(chunk, start, stop)], up_to
