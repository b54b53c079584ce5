"""Bytes -> requests, sans I/O. The authority on what Redis takes for a request.

Two verbs: `take(data)` for a peer that has authenticated, everything complete at once; `feed(data)` and `next()` for
one that has not, because each request may change what the next one is allowed to be. Limits, error texts and oddities
are Redis's (networking.c of 7.0.15): headers are read up to a CR and end one byte after it, a NUL hides what follows it
from the search for that CR, an argument's terminator is two bytes that nobody looks at.

After a `ProtocolError` the parser is spent: the caller answers and closes.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from rlite_pubsub.protocol import errors, inline
from rlite_pubsub.protocol.batch import CUT, CUT_ARGUMENTS, BatchReader, Run, run_prefix, split_run, written
from rlite_pubsub.protocol.errors import ProtocolError

# -- What the protocol refuses, and where each number comes from. Redis 7.0.15 is the precedent of every one of them
# (networking.c, server.h, config.c).

MAX_INLINE_BYTES: Final = 64 * 1024
"""An inline request, or a header line, longer than this is refused (PROTO_INLINE_MAX_SIZE)."""

MAX_MULTIBULK: Final = 2**31 - 1
"""The largest number of arguments that a header may announce (INT_MAX)."""

MAX_BULK_BYTES: Final = 512 * 1024 * 1024
"""The default of proto-max-bulk-len."""

MAX_UNAUTHENTICATED_ARGUMENTS: Final = 10
"""While a password is due, a header may announce this many arguments (AUTH and HELLO need no more)."""

MAX_UNAUTHENTICATED_BULK_BYTES: Final = 16384
"""While a password is due, no argument may be longer."""

Command: TypeAlias = list[bytes]

_CUT: Final = CUT  # compiled code finds its own names without a look-up
_CUT_ARGUMENTS: Final = CUT_ARGUMENTS
_NUMBER: Final = re.compile(rb"0|-?[1-9]\d{0,18}")
_MAX_BATCH_BYTES: Final = 256 * 1024
"""A chunk longer than this holds large arguments, which the exact parser cuts out more cheaply."""

_SINGLE_BYTES: Final = 1024
"""So short a chunk may be a single request, and it costs little to see whether it is."""

_SMALL_CHUNK_BYTES: Final = 4096
"""Shorter chunks of a large argument are gathered in one: as objects of their own they cost many times their length."""

_MANY_ARGUMENTS: Final = 16
"""From this many on the ordinary ones are cut out in C, and the exact parser looks at what is left."""

_NOTHING: Final[Command] = []


class Parser:
    """The requests of one connection."""

    __slots__ = (
        "_args",
        "_at",
        "_batch",
        "_buffer",
        "_bulk_bytes",
        "_expected",
        "_last_head",
        "_missing",
        "_parts",
        "_waiting_bytes",
        "failure",
        "max_bulk_bytes",
        "trusted",
    )

    def __init__(self, batch: BatchReader, max_bulk_bytes: int = MAX_BULK_BYTES, trusted: bool = True) -> None:
        self.max_bulk_bytes = max_bulk_bytes
        self.trusted = trusted
        self.failure: ProtocolError | None = None
        self._batch = batch
        self._buffer = b""
        self._at = 0
        self._args = _NOTHING
        self._missing = 0  # arguments that the request under way still lacks
        self._bulk_bytes = -1  # length of the argument under way, -1 while its header is due
        self._parts: list[bytes | bytearray] | None = None  # chunks of a large argument, joined once
        self._waiting_bytes = 0  # bytes in _parts
        self._expected = b""  # prefix of the run that is expected
        self._last_head = _NOTHING

    @property
    def buffered_bytes(self) -> int:
        """How much came in and is not part of a request yet."""
        return len(self._buffer) - self._at + self._waiting_bytes

    def take(self, data: bytes) -> list[Command | Run]:
        """All complete requests, in order. A `failure` stands behind them: execute them first, then answer it."""
        if len(data) <= _SINGLE_BYTES and not self._buffer and not self._missing and len(data) <= self.max_bulk_bytes:
            if _CUT is not None:
                alone: list[Command | Run] = []
                if _CUT(data, alone, 1) == len(data):
                    return alone  # of a client that waits for each reply
            else:
                command = data.split(b"\r\n")[2::2]
                if command and written(tuple(command)) == data:
                    return [command]  # written as clients write it, so it is proved
        taken: list[Command | Run] = []
        at = 0
        if self._missing or self._buffer:
            self.feed(data)
            data, at = self._finish_request(taken)
        expected = self._expected
        if expected and data.startswith(expected, at) and len(data) <= self.max_bulk_bytes:
            run = split_run(data, expected, at)
            if run is not None:
                tails, at = run
                taken.append(Run(self._last_head, tails))
        if at < len(data):
            self._take_rest(data[at:] if at else data, taken)
        return taken

    def feed(self, data: bytes) -> None:
        """Accept bytes without looking at them."""
        if self._parts is not None:
            needed = self._bulk_bytes + 2 - self._waiting_bytes
            if len(data) < needed:
                self._gather(data, self._parts)
            else:
                self._complete_large_argument(data, needed, self._parts)
            return
        self._buffer = self._buffer[self._at :] + data if self._buffer else data
        self._at = 0

    def next(self) -> Command | None:
        """Return the next complete request, or None. Raises ProtocolError."""
        if self._parts is not None:
            return None
        if self._args and not self._missing:  # its last argument was a large one
            return self._arguments()
        while self._missing or self._at < len(self._buffer):
            if self._missing == 0 and self._buffer[self._at] != 0x2A:
                line = self._inline()
                if line is None:
                    return None
                if line:
                    return line
                continue
            if not self._missing and not self._multibulk_header():
                return None
            if self._missing:
                return self._arguments()
        self._buffer = b""
        self._at = 0
        return None

    def _finish_request(self, taken: list[Command | Run]) -> tuple[bytes, int]:
        """Complete the request that an earlier chunk began; the bytes behind it, and where in them they begin."""
        try:
            command = self.next()
        except ProtocolError as failure:
            self.failure = failure
            return b"", 0
        if command is None:
            return b"", 0
        taken.append(command)
        self._expect(command)
        rest, at = self._buffer, self._at
        self._buffer = b""
        self._at = 0
        return rest, at

    def _take_rest(self, data: bytes, taken: list[Command | Run]) -> None:
        """Take from bytes that begin where a request begins, and no run does."""
        expected = self._expected
        known = expected and data.startswith(expected)  # the run's next request, incomplete: nothing for a batch
        if not known and len(data) <= min(_MAX_BATCH_BYTES, self.max_bulk_bytes):  # else an argument may be too long
            batch = self._batch.read(data)
            if batch is not None:
                commands, end = batch
                taken += commands
                data = data[end:]
                self._expect(commands[-1])
        if not data:
            return
        self._buffer = data
        exact: list[Command] = []
        try:
            while (command := self.next()) is not None:
                exact.append(command)
        except ProtocolError as failure:
            self.failure = failure
        if exact:
            taken += exact
            self._expect(exact[-1])

    def _expect(self, command: Command) -> None:
        """Two chunks that end with the same head announce a run."""
        head = command[:-1]
        if head != self._last_head:
            self._last_head = head
            self._expected = b""
        elif not self._expected and len(head) > 1:  # nobody takes a run with a word alone: GET, say
            self._expected = run_prefix(command)

    def _line_end(self, too_long: bytes) -> int:
        """Return where the header at the cursor ends (its CR), -1 while it is incomplete."""
        cr = self._buffer.find(b"\r", self._at)
        if cr < 0 or self._buffer.find(b"\0", self._at, cr) >= 0:
            if len(self._buffer) - self._at > MAX_INLINE_BYTES:
                raise ProtocolError(too_long)
            return -1
        return cr if cr + 1 < len(self._buffer) else -1

    def _number(self, end: int) -> int | None:
        """Return the canonical decimal between the type byte and `end`; None where Redis sees no number."""
        digits = self._buffer[self._at + 1 : end]
        if not _NUMBER.fullmatch(digits):
            return None
        number = int(digits)
        return number if -(2**63) <= number < 2**63 else None

    def _inline(self) -> Command | None:
        """One line's words; empty for a blank line; None while it is incomplete."""
        newline = self._buffer.find(b"\n", self._at)
        if newline < 0 or self._buffer.find(b"\0", self._at, newline) >= 0:
            if len(self._buffer) - self._at > MAX_INLINE_BYTES:
                raise ProtocolError(errors.TOO_BIG_INLINE)
            return None
        end = newline - 1 if newline > self._at and self._buffer[newline - 1] == 0x0D else newline
        words = inline.split(self._buffer[self._at : end])
        if words is None:
            raise ProtocolError(errors.UNBALANCED_QUOTES)
        self._at = newline + 1
        return words

    def _multibulk_header(self) -> bool:
        end = self._line_end(errors.TOO_BIG_MULTIBULK_COUNT)
        if end < 0:
            return False
        count = self._number(end)
        if count is None or count > MAX_MULTIBULK:
            raise ProtocolError(errors.INVALID_MULTIBULK_LENGTH)
        if count > MAX_UNAUTHENTICATED_ARGUMENTS and not self.trusted:
            raise ProtocolError(errors.UNAUTHENTICATED_MULTIBULK_LENGTH)
        self._at = end + 2
        if count > 0:
            self._missing = count
            self._args = []
        return True

    def _arguments(self) -> Command | None:
        """Go on with the request under way; its arguments once all are there."""
        if _CUT_ARGUMENTS is not None and self._bulk_bytes < 0 and self._missing >= _MANY_ARGUMENTS:
            args, before = self._args, len(self._args)
            longest = self.max_bulk_bytes if self.trusted else MAX_UNAUTHENTICATED_BULK_BYTES
            self._at = _CUT_ARGUMENTS(self._buffer, self._at, args, self._missing, longest)
            self._missing -= len(args) - before
        while self._missing:
            if self._bulk_bytes < 0 and not self._bulk_header():
                return None
            end = self._at + self._bulk_bytes
            if len(self._buffer) < end + 2:
                self._wait_for_large_argument()
                return None
            self._args.append(self._buffer[self._at : end])
            self._at = end + 2
            self._bulk_bytes = -1
            self._missing -= 1
        args, self._args = self._args, _NOTHING
        return args

    def _bulk_header(self) -> bool:
        end = self._line_end(errors.TOO_BIG_BULK_COUNT)
        if end < 0:
            return False
        if self._buffer[self._at] != 0x24:
            raise ProtocolError(errors.expected_bulk(self._buffer[self._at : self._at + 1]))
        length = self._number(end)
        if length is None or not 0 <= length <= self.max_bulk_bytes:
            raise ProtocolError(errors.INVALID_BULK_LENGTH)
        if length > MAX_UNAUTHENTICATED_BULK_BYTES and not self.trusted:
            raise ProtocolError(errors.UNAUTHENTICATED_BULK_LENGTH)
        self._at = end + 2
        self._bulk_bytes = length
        return True

    def _gather(self, data: bytes, parts: list[bytes | bytearray]) -> None:
        self._waiting_bytes += len(data)
        if len(data) >= _SMALL_CHUNK_BYTES:
            parts.append(data)
        elif parts and isinstance(parts[-1], bytearray):
            parts[-1] += data
        else:
            parts.append(bytearray(data))

    def _complete_large_argument(self, data: bytes, needed: int, parts: list[bytes | bytearray]) -> None:
        """The chunk that completes it has come: `needed` of its bytes, the unseen terminator included."""
        parts.append(data[: max(needed - 2, 0)])
        argument = b"".join(parts)
        self._args.append(argument if len(argument) == self._bulk_bytes else argument[: self._bulk_bytes])
        self._parts = None
        self._waiting_bytes = 0
        self._bulk_bytes = -1
        self._missing -= 1
        self._buffer = data
        self._at = needed

    def _wait_for_large_argument(self) -> None:
        """Gather the chunks of an argument in a list: joining them one by one would cost the square of its length."""
        rest = self._buffer[self._at :]
        self._parts = [rest] if rest else []
        self._waiting_bytes = len(rest)
        self._buffer = b""
        self._at = 0
