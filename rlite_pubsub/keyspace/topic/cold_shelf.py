"""The row groups read from the cold store, as long as somebody wants them.

Promises:
 - The event loop does not wait for the cold store: a caller that can ask again (`may_miss`) learns by `ColdMiss` what
   is not here; another thread fetches it, and it is asked for again when it is there (engine/waits/cold_wait.py).
 - What is here takes at most about as many bytes as it may, but for what a single request needs at once; what nobody
   has looked at for `IDLE_SECONDS` goes.
 - A sequential reader finds the next row group here: it is fetched while the one before is read.
 - A block that can't be read is an error for those who need it, and it is tried again a second later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics.chunks import Chunk

log = logging.getLogger("rlite_pubsub")

IDLE_SECONDS = 10.0
SURPLUS_SECONDS = 1.0
"""The one that waited for it has read it by then."""
RETRY_SECONDS = 1.0
_CHUNK_BYTES = 200
"""What a chunk takes beside its value."""

T = TypeVar("T")
Key: TypeAlias = tuple[str, bytes, int]
"""(path of a block, its sha256, number of a row group): a path may have been another block's before."""


class ColdMiss(Exception):
    """Row groups have to be fetched first. The code that raises it has changed nothing."""

    def __init__(self, shelf: Shelf, wanted: list[tuple[BlockInfo, int]]) -> None:
        super().__init__(f"{len(wanted)} row groups are to be read")
        self.shelf = shelf
        self.wanted = wanted


class ColdUnreadable(CommandError):
    """A block can't be read: it is missing, damaged, or its place can't be reached. The text names it. What else a
    request or a turn has done stands."""

    def __init__(self, text: str) -> None:
        super().__init__(b"COLD " + " ".join(text.split()).encode(errors="backslashreplace"))


class Load(Protocol):
    """Reads one row group. In any thread. Raises Exception."""

    def __call__(self, block: BlockInfo, number: int) -> Chunk: ...


class WorkElsewhere(Protocol):
    """Does work in another thread, and calls `done` with what came of it in the thread of the loop."""

    def __call__(self, work: Callable[[], Chunk], done: Callable[[Chunk | Exception], None]) -> None: ...


class _Wait:
    """Somebody who needs row groups."""

    __slots__ = ("done", "missing")

    def __init__(self, missing: set[Key], done: Callable[[], None]) -> None:
        self.missing = missing
        self.done = done


class _Forsaken(Exception):
    """Nobody waits for it any more: the waiting ones got an error, or are gone."""


class _Held(NamedTuple):
    chunk: Chunk
    used_at: float


class Shelf:
    """The row groups that one process has in memory."""

    def __init__(self, load: Load, run: WorkElsewhere | None, max_bytes: Callable[[], int]) -> None:
        """Without `run` all is fetched at once, by the caller."""
        self._load = load
        self._run = run
        self._max_bytes = max_bytes
        self._held: dict[Key, _Held] = {}  # the one that was used last is the last one
        self._failed: dict[Key, tuple[float, str]] = {}
        self._fetching: set[Key] = set()
        self._waits: list[_Wait] = []
        self._pins: dict[Key, int] = {}
        self.held_bytes = 0
        self.may_miss = False  # who reads now can wait. Otherwise what is missing is read at once, whatever it costs
        self.fetched = 0  # ever
        self.failures = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A reader within this can wait: ColdMiss says what is missing."""
        before, self.may_miss = self.may_miss, True
        try:
            yield
        finally:
            self.may_miss = before

    def get(self, block: BlockInfo, number: int) -> Chunk | None:
        """Return a row group, if it is here. Raises ColdUnreadable."""
        key = _key(block, number)
        held = self._held.pop(key, None)
        if held is not None:
            self._held[key] = _Held(held.chunk, monotonic())
            return held.chunk
        failed = self._failed.get(key)
        if failed is not None:
            if monotonic() < failed[0]:
                raise ColdUnreadable(failed[1])
            del self._failed[key]
        if self._run is not None and self.may_miss:
            return None
        return self._fetch_now(block, number)

    def _fetch_now(self, block: BlockInfo, number: int) -> Chunk:
        key = _key(block, number)
        try:
            chunk = self._load(block, number)
        except Exception as failure:
            raise self._unreadable(key, failure) from failure
        self._keep(key, chunk)
        return chunk

    def look_ahead(self, block: BlockInfo, number: int) -> None:
        """Somebody will probably want this one next."""
        key = _key(block, number)
        if self._run is None or key in self._held or key in self._fetching or key in self._failed:
            return
        if block.groups[number].wire_bytes * 2 < self._max_bytes():
            self._begin(block, number)

    def fetch(self, miss: ColdMiss, done: Callable[[], None]) -> Callable[[], None]:
        """Fetch what is missing; `done` is called when it is here, or can't be had. What this returns is to be called
        when it is no longer needed: what was fetched stays until then."""
        keys = [_key(block, number) for block, number in miss.wanted]
        for key in keys:
            self._pins[key] = self._pins.get(key, 0) + 1
        wait = _Wait(set(keys), done)
        self._waits.append(wait)
        for block, number in miss.wanted:
            if _key(block, number) not in self._fetching:
                self._begin(block, number)

        def unpin() -> None:
            if wait in self._waits:
                self._waits.remove(wait)
            for key in keys:
                self._pins[key] -= 1
                if not self._pins[key]:
                    del self._pins[key]

        return unpin

    def _begin(self, block: BlockInfo, number: int) -> None:
        key = _key(block, number)
        self._fetching.add(key)
        assert self._run is not None

        is_awaited = key in self._pins

        def load() -> Chunk:
            if is_awaited and key not in self._pins:
                raise _Forsaken
            return self._load(block, number)

        def done(found: Chunk | Exception) -> None:
            self._fetching.discard(key)
            if isinstance(found, _Forsaken):
                if key in self._pins:  # by a reader that came later
                    self._begin(block, number)
                return
            if isinstance(found, Exception):
                self._unreadable(key, found)
            else:
                self._keep(key, found)
            self._settle(key, is_failed=isinstance(found, Exception))

        self._run(load, done)

    def _settle(self, key: Key, *, is_failed: bool) -> None:
        """Those who wait for this one, and for nothing else, go on; where it can't be had, they need not wait on."""
        for wait in list(self._waits):
            if key in wait.missing:
                wait.missing.discard(key)
                if is_failed or not wait.missing:
                    self._waits.remove(wait)
                    wait.done()

    def _keep(self, key: Key, chunk: Chunk) -> None:
        self.fetched += 1
        before = self._held.pop(key, None)
        if before is not None:
            self.held_bytes -= len(before.chunk) + _CHUNK_BYTES
        self._held[key] = _Held(chunk, monotonic())
        self.held_bytes += len(chunk) + _CHUNK_BYTES
        if self.held_bytes > self._max_bytes():
            self._drop(key)

    def _drop(self, newest: Key) -> None:
        """Make room, by what was used least lately."""
        max_bytes = self._max_bytes()
        for key in list(self._held):
            if self.held_bytes <= max_bytes:
                return
            if key != newest and key not in self._pins:
                self._forget(key)

    def _forget(self, key: Key) -> None:
        self.held_bytes -= len(self._held.pop(key).chunk) + _CHUNK_BYTES

    def cron(self) -> None:
        """Let go what nobody has used for a while: sooner, where it is more than there may be."""
        past = monotonic() - (IDLE_SECONDS if self.held_bytes <= self._max_bytes() else SURPLUS_SECONDS)
        for key, held in list(self._held.items()):
            if held.used_at < past and key not in self._pins:
                self._forget(key)
        for key, (until, _) in list(self._failed.items()):
            if until < past:
                del self._failed[key]

    def _unreadable(self, key: Key, failure: Exception) -> ColdUnreadable:
        self.failures += 1
        about = str(failure)
        text = f"The cold store can't be read: {about if key[0] in about else f'{key[0]}: {about}'}"
        if key not in self._failed:
            log.error("%s", text)
        self._failed[key] = monotonic() + RETRY_SECONDS, text
        return ColdUnreadable(text)


def _key(block: BlockInfo, number: int) -> Key:
    return block.path, block.sha256, number


def if_here(shelf: Shelf | None, read: Callable[[], T]) -> T | None:
    """Return the result of `read` if it is available at once; None if something must be fetched for it, which begins
    then, or cannot be had."""
    if shelf is None:
        return read()
    try:
        with shelf.waiting():
            return read()
    except ColdMiss as miss:
        for block, number in miss.wanted:
            shelf.look_ahead(block, number)
    except ColdUnreadable:
        pass
    return None


class ColdAccess:
    """A process's access to the cold store: a shelf, made when something is first read there."""

    def __init__(self) -> None:
        self.shelf: Shelf | None = None
        self.grace_ms = 0  # so long files stay that nobody needs any more, but who reads them
        self._open: Callable[[Txn], Shelf | None] = _cannot

    def read_by(self, open_shelf: Callable[[Txn], Shelf | None]) -> None:
        """`open_shelf` makes what reads the cold store; None: it can't be read."""
        self._open = open_shelf

    def keep(self, grace_ms: int) -> None:
        """So long files stay that nobody needs any more, but who reads them."""
        self.grace_ms = grace_ms

    def begin(self, txn: Txn) -> None:
        """There is a cold store: read there from now on."""
        if self.shelf is None:
            self.shelf = self._open(txn)


def _cannot(txn: Txn) -> Shelf | None:
    """Blocks cannot be read here."""
    return None
