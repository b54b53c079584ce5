"""An RDB file's keys into a store, some at a time, each time in one commit.

A key whose time is over is left out, as Redis's masters do. What Redis's modules wrote is passed over and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.engine.eviction.usage import Often
from rlite_pubsub.engine.payloads import Image, build, read_value
from rlite_pubsub.protocol.rdb.file import STREAM_DATABASE, Aux, FunctionLibrary, Key, StreamReader, read_file
from rlite_pubsub.storage.keys import key_records

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine

MOST_DATABASES = key_records.MOST_DATABASES
_AT_ONCE_KEYS = 2000
_AT_ONCE_BYTES = 4 << 20


class Loading:
    """Loads keys into one store."""

    def __init__(
        self, engine: Engine, turn: Callable[[Callable[[], None]], None], databases: int = MOST_DATABASES
    ) -> None:
        """`turn` does some work as a turn, and commits it. Keys of so many databases can be loaded."""
        self._engine = engine
        self._turn = turn
        self._databases = databases
        self.keys = 0
        self.libraries = 0
        self.over = 0
        """Keys whose time is over."""
        self.of_modules = 0
        self.stream_database = 0
        """What the stream behind the file begins in."""

    def prove(self, read: Callable[[int], bytes]) -> int:
        """Check that a file can be loaded; how many bytes it has. Nothing is changed. Raises Malformed, FunctionError,
        and what `read` does."""
        reader = StreamReader(read)
        items = read_file(reader, read_value, self._databases)
        codes = [item.code for item in items if isinstance(item, FunctionLibrary)]
        if codes:
            self._begin_lua()
            self._engine.libraries.check(codes)
        return reader.taken

    def load(self, read: Callable[[int], bytes]) -> int:
        """Load a file; how many bytes it has. `read` answers this many bytes, and fewer only at the end. Raises
        Malformed, StoreError, FunctionError, and what `read` does: what came before is loaded then."""
        reader = StreamReader(read)
        waiting: list[Key[Image]] = []
        codes: list[bytes] = []
        put = 0
        for item in read_file(reader, read_value, self._databases):
            if isinstance(item, FunctionLibrary):
                codes.append(item.code)
            elif isinstance(item, Aux):
                if item.name == STREAM_DATABASE and item.value.isdigit():  # -1: it selects one
                    self.stream_database = int(item.value)
            elif isinstance(item, Key):
                if item.value is None:
                    self.of_modules += 1
                    continue
                waiting.append(item)
                if len(waiting) >= _AT_ONCE_KEYS or reader.taken - put >= _AT_ONCE_BYTES:
                    self._put(waiting)
                    waiting, put = [], reader.taken
        if waiting:
            self._put(waiting)
        if codes:
            self._begin_lua()
            self._engine.libraries.restore(codes, replace=True)
            self.libraries += len(codes)
        return reader.taken

    def _begin_lua(self) -> None:
        from rlite_pubsub.engine.functions.functions import functions_of  # with it comes Lua

        functions_of(self._engine)

    def _put(self, waiting: list[Key[Image]]) -> None:
        engine = self._engine

        def work() -> None:
            try:
                for key in waiting:
                    self._put_key(key)
            except Exception as failure:
                engine.keyspace.fail(failure)

        self._turn(work)
        if engine.key_commit.failure is not None:
            raise engine.key_commit.failure

    def _put_key(self, key: Key[Image]) -> None:
        engine = self._engine
        keyspace = engine.keyspace
        if key.expires_ms and key.expires_ms <= keyspace.clock_ms():
            self.over += 1
            return
        assert key.value is not None
        keyspace.delete(key.database, key.name)
        record = build(keyspace, key.database, key.name, key.value)
        if key.expires_ms:
            keyspace.set_expiry(record, key.expires_ms)
        usage, now = engine.memory_limit.usage, engine.clock()
        if isinstance(usage, Often):
            if key.frequency is not None:
                usage.set(key.database, key.name, key.frequency, now)
        elif key.idle_s is not None:
            record.touch(now - key.idle_s)
        self.keys += 1
