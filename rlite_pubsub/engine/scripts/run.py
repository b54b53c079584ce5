"""A script's run: who executes its calls, what is known of it while it lasts, and its end: its reply, or its error with
the place where it was raised, and how both are counted."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.protocol import encoder
from rlite_pubsub.protocol.replies import Encoded, Error, Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.scripts.cache import Program
    from rlite_pubsub.engine.scripts.crossing import Outcome
    from rlite_pubsub.engine.table import Command

_KILLED: Final = b"ERR Script killed by user with SCRIPT KILL..."


class ScriptSession(CommandSession):
    """The session that executes the calls of scripts. Messages to it are dropped."""

    @property
    def address(self) -> str:
        return "lua"

    def flush(self) -> None:
        self.said.clear()

    def close_now(self) -> None:
        """Do nothing: it has no connection."""


class ScriptRun:
    """One run of a script."""

    __slots__ = ("allows_oom", "args", "caller", "command", "has_called", "is_dirty", "is_eval", "is_killed", "lack",
                 "name", "read_only", "reason", "since", "writes")  # fmt: skip

    def __init__(
        self, caller: CommandSession, args: list[bytes], program: Program, read_only: bool, lack: bytes | None
    ) -> None:
        command = caller.last_command
        assert command is not None
        self.caller = caller
        self.command: Command = command
        self.args = args
        self.name = program.name
        self.is_eval = program.is_eval
        self.read_only = read_only or program.writes_nothing
        self.allows_oom = program.allows_oom
        self.lack = lack  # why additions are refused before it has written anything
        self.has_called = False  # any command
        self.is_dirty = False  # it has called a command that writes
        self.writes = False  # nobody else can write from here on
        self.is_killed = False
        self.reason: BaseException | None = None  # why it cannot go on, and what its end raises
        self.since = monotonic()

    def kill(self, reason: BaseException | None = None) -> None:
        """End the run, with an error that says so or with this reason."""
        self.is_killed = True
        self.reason = self.reason if reason is None else reason


def reply_of(stats: Stats, run: ScriptRun, outcome: Outcome) -> Reply:
    """Return the reply for the outcome of a run."""
    encoded, failures, *place = outcome
    if encoded is None:
        return Error(_KILLED + _place(run, failures, place[0]))
    if encoded is not False:
        if failures is not True:
            return _with_failures(stats, run, encoded, failures, place[0])
        return Encoded(encoded)
    if not place:
        return Error(b"ERR Error running script %b, %b" % (run.name, failures[:100]))
    source, line, is_counted = place
    text = failures + _place(run, source, line)
    if is_counted:
        return Error(text)
    stats.of(run.command).failed += 1  # the error itself has been counted
    return Encoded(encoder.error(text))


def _place(run: ScriptRun, source: bytes | None, line: bytes | None) -> bytes:
    if source is None or line is None:
        return b""
    return b" script: %b, on %b:%b." % (run.name, source, line)


def _with_failures(stats: Stats, run: ScriptRun, encoded: bytes, failures: bytes, known: int) -> Reply:
    """Count the errors that a script returns, alone or inside its reply, except those counted already."""
    stats.of(run.command).failed += known
    if not failures:
        return Encoded(encoded)
    if encoded[:1] == b"-":
        return Error(encoded[1:-2])
    for failure in failures.split(b"\n"):
        stats.count_error(failure)
    stats.of(run.command).failed += 1
    return Encoded(encoded)
