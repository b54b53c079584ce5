"""A script's run, as one command: what it calls is executed here, and nothing but its end is answered.

Promises, as of redis-server 7.0.15 (script.c):
 - A script is one command of its turn, so there is one commit for it. What it has written stays, however it ends.
 - Time stands still for keys: none goes because its time is over while a script looks.
 - It waits for nobody (law 9): a command that would block answers at once, and where another process is writing the
   script stops before it has changed anything, and is run again.
 - Whatever it does is allowed to the user who runs it, and to nobody else.
"""

from __future__ import annotations

import logging
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.engine.refusal import failed, unwritten
from rlite_pubsub.engine.scripts.cache import ALLOW_OOM, NO_WRITES, Flags, Script, shebang
from rlite_pubsub.engine.scripts.conversions import Conversion, argument
from rlite_pubsub.engine.scripts.killing import BUSY_FUNCTION, BUSY_SCRIPT
from rlite_pubsub.engine.scripts.sandbox import Function, Outcome, Registered, Sandbox, SyntaxFailure
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.monitor import feed_monitors
from rlite_pubsub.engine.table import TABLE, Command
from rlite_pubsub.protocol import encoder, errors
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Encoded, Error, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.engine import Engine

log: Final = logging.getLogger("rlite_pubsub")

MAX_BYTES: Final = 256 << 20
"""Of memory for all that scripts hold at once."""
_LARGE_BYTES: Final = 1 << 16
_KILLED: Final = b"ERR Script killed by user with SCRIPT KILL..."
_LEVELS: Final = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING)
_VERBOSITY: Final = (b"debug", b"verbose", b"notice", b"warning")
_CHANGES: Final = frozenset(("write", "may_replicate"))
_UNSEEN_BY_MONITORS: Final = frozenset(("skip_monitor", "admin"))
_DENIED: Final = {
    b"command": b"can't run this command or subcommand",
    b"key": b"can't access at least one of the keys mentioned in the command arguments",
    b"channel": b"can't publish to the channel mentioned in the command",
}


class ScriptSession(CommandSession):
    """Who executes what scripts call: nobody hears what is said to it."""

    @property
    def address(self) -> str:
        return "lua"

    def flush(self) -> None:
        self.said.clear()

    def close_now(self) -> None:
        """It has no connection."""


class ScriptRun:
    """One script's, while it lasts."""

    __slots__ = ("allows_oom", "args", "caller", "command", "is_dirty", "is_eval", "is_killed", "lack", "name",
                 "read_only", "reason", "since", "writes")  # fmt: skip

    def __init__(
        self, caller: CommandSession, args: list[bytes], name: bytes, flags: Flags | None, read_only: bool,
        is_eval: bool, lack: bytes | None,
    ) -> None:  # fmt: skip
        assert caller.last_command is not None
        self.caller = caller
        self.command: Command = caller.last_command
        self.args = args
        self.name = name
        self.read_only = read_only or (flags is not None and NO_WRITES in flags)
        self.allows_oom = flags is not None and ALLOW_OOM in flags
        self.is_eval = is_eval
        self.lack = lack  # why what adds to what is kept is refused, before it has written anything
        self.is_dirty = False  # it has called a command that writes
        self.writes = False  # nobody else can be writing from here on
        self.is_killed = False
        self.reason: BaseException | None = None  # why it can't go on, and what its end raises
        self.since = monotonic()

    def kill(self, reason: BaseException | None = None) -> None:
        """It is to end, with an error that says so, or for this reason."""
        self.is_killed = True
        self.reason = self.reason if reason is None else reason


class Runner:
    """The Lua of one engine, and what runs in it."""

    def __init__(self, engine: Engine, version: str) -> None:
        """`version`: the Redis that scripts are told they run on."""
        self._engine = engine
        self._session = ScriptSession(engine)
        self._session.deny_blocking = self._session.in_script = True
        self.sandbox = Sandbox(self, version, MAX_BYTES)
        self._conversion = Conversion(self.sandbox.table)
        self.run_script = self.sandbox.run_script
        self.run_function = self.sandbox.run_function
        self.running: ScriptRun | None = None
        self._load_until = 0.0  # 0: no library is loaded

    # -- scripts and libraries

    def load(self, sha: bytes, body: bytes) -> Script:
        """Compile a script and keep it. Raises CommandError."""
        flags, begins = shebang(body)
        try:
            function = self.sandbox.compile(body[begins:], b"@user_script")
        except SyntaxFailure as failure:
            raise CommandError(b"ERR Error compiling script (new function): %b" % failure.text) from None
        script = Script(sha, body, flags, function)
        self._engine.scripts.add(script)
        return script

    def load_library(self, source: bytes, seconds: float) -> list[Registered]:
        """The functions that the code of a library registers. Raises SyntaxFailure, and LoadFailure, also if it takes
        longer than that."""
        self._load_until = monotonic() + seconds
        try:
            return self.sandbox.load_library(source)
        finally:
            self._load_until = 0.0

    def run(
        self,
        caller: CommandSession,
        args: list[bytes],
        call: Callable[..., Outcome],
        function: Function,
        name: bytes,
        keys: int,
        flags: Flags | None,
        *,
        read_only: bool,
        is_eval: bool = True,
    ) -> Reply:
        """Run it for this session, whose request is `args`: so many of what stands behind the third are keys.
        `call` is `run_script` or `run_function`. Raises CommandError; StoreHeld, if it must wait."""
        assert self.running is None
        engine = self._engine
        lack = self._lack()
        if flags is not None:
            self._check_flags(flags, read_only, lack)
        sandbox = self.sandbox
        given = args[3:]
        size_bytes = sum(map(len, given)) + 64 * len(given)
        if size_bytes > sandbox.max_bytes or not sandbox.has_room(size_bytes):
            raise CommandError(b"ERR Error running script %b, not enough memory" % name)
        session = self._session
        session.db = caller.db
        session.protocol = self._conversion.protocol = 2
        session.limits, session.user = caller.limits, caller.user
        session.no_touch = caller.no_touch
        keyspace = engine.keyspace
        cold = keyspace.cold.shelf
        may_miss = cold is not None and cold.may_miss
        if cold is not None:
            cold.may_miss = False
        run = self.running = engine.scripts.running = ScriptRun(caller, args, name, flags, read_only, is_eval, lack)
        engine.freeze_time()
        try:
            outcome = call(function, caller.protocol, keys, *given)
        finally:
            self.running = engine.scripts.running = None
            engine.unfreeze_time()
            if engine.scripts.refusal is not None:
                engine.scripts.refusal = None
                engine.look_out()
            if cold is not None:
                cold.may_miss = may_miss
            if session.said:
                session.said.clear()
        if sandbox.used_bytes() > sandbox.swept_at_bytes:
            sandbox.sweep()
        if type(outcome) is bytes:
            return outcome
        if run.reason is not None:
            raise run.reason
        return self._reply(run, outcome)

    def _lack(self) -> bytes | None:
        """Why nothing can be added to what is kept."""
        engine = self._engine
        if engine.memory_limit.bytes and not engine.memory_limit.makes_room():
            return errors.OUT_OF_MEMORY
        if engine.keyspace.environment.room.full is not None:
            lack = engine.housekeeping.make_room()
            if lack is not None:
                return unwritten(lack)
        return None

    def _check_flags(self, flags: Flags, read_only: bool, lack: bytes | None) -> None:
        if NO_WRITES in flags:
            return
        if read_only:
            raise CommandError(b"ERR Can not execute a script with write flag using *_ro command.")
        if ALLOW_OOM not in flags and lack is not None:
            raise CommandError(
                b"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
            )

    def _reply(self, run: ScriptRun, outcome: Outcome) -> Reply:
        encoded, failures, *place = outcome
        if encoded is None:
            return Error(_KILLED + self._place(run, failures, place[0]))
        if encoded is not False:
            if failures is not True:
                return self._with_failures(run, encoded, failures, place[0])
            return Encoded(encoded)
        if not place:
            return Error(b"ERR Error running script %b, %b" % (run.name, failures[:100]))
        source, line, is_counted = place
        text = failures + self._place(run, source, line)
        if is_counted:
            return Error(text)
        self._engine.stats.of(run.command).failed += 1  # the error itself is counted already
        return Encoded(encoder.error(text))

    @staticmethod
    def _place(run: ScriptRun, source: bytes | None, line: bytes | None) -> bytes:
        if source is None or line is None:
            return b""
        return b" script: %b, on %b:%b." % (run.name, source, line)

    def _with_failures(self, run: ScriptRun, encoded: bytes, failures: bytes, known: int) -> Reply:
        """Errors that are, or are in, what a script has returned count as any do; so many of them have been counted."""
        stats = self._engine.stats
        stats.of(run.command).failed += known
        if not failures:
            return Encoded(encoded)
        if encoded[:1] == b"-":
            return Error(encoded[1:-2])
        for failure in failures.split(b"\n"):
            stats.count_error(failure)
        stats.of(run.command).failed += 1
        return Encoded(encoded)

    # -- what sandbox.py calls a ScriptHost

    def execute_packed(self, packed: bytes) -> Any:
        """As `execute`: what is too much for a call, each behind its length and a line's end."""
        words: list[bytes] = []
        at = 0
        while at < len(packed):
            begins = packed.index(b"\n", at) + 1
            at = begins + int(packed[at:begins])
            words.append(packed[begins:at])
        return self.execute(*words)

    def execute(self, *args: Any) -> Any:
        """Execute a command for the script that runs."""
        run = self.running
        assert run is not None
        try:
            return self._execute(run, args)
        except BaseException as failure:  # it must not pass through Lua
            run.reason = failure
            return None, b""

    def _execute(self, run: ScriptRun, args: tuple[Any, ...]) -> Any:
        sandbox = self.sandbox
        if sandbox.used_bytes() > sandbox.max_bytes and not sandbox.has_room(0):
            return False, b"ERR not enough memory"
        words: list[bytes] = []
        for each in args:
            word = each if type(each) is bytes else argument(each)
            if word is None:
                return False, b"ERR Lua redis lib command arguments must be strings or integers"
            words.append(word)
        if not words:
            return False, b"ERR Please specify at least one argument for this redis lib call"
        command = TABLE.spellings.get(words[0])
        if command is None or command.subcommands:
            try:
                command = TABLE.resolve(words)
            except CommandError:
                return self._rejected(None, b"ERR Unknown Redis command called from script")
        handler = command.handler
        if not command.fewest <= len(words) <= command.most or handler is None:
            return self._rejected(command, b"ERR Wrong number of args calling Redis command from script")
        flags = command.flags
        if "noscript" in flags and not self._engine.scripts.all_commands:
            return self._rejected(command, b"ERR This Redis command is not allowed from script")
        session = self._session
        engine = self._engine
        if session.limits is not None:
            refusal = self._forbidden(run, command, words)
            if refusal is not None:
                return self._rejected(command, refusal)
        keyspace = engine.keyspace
        if not flags.isdisjoint(_CHANGES):
            if run.read_only:
                return self._rejected(command, b"ERR Write commands are not allowed from read-only scripts.")
            if not run.writes:
                self._take_writer(run, command)
            if "write" in flags:
                if run.lack is not None and not run.is_dirty and not run.allows_oom and "denyoom" in flags:
                    return self._rejected(command, run.lack)
                run.is_dirty = True
        session.last_command = command
        began = perf_counter_ns()
        try:
            reply = handler(session, words)
        except CommandError as refused:
            reply = Error(refused.text)
        except Exception as failure:
            reply = failed(keyspace, command, failure)
        duration_us = (perf_counter_ns() - began) // 1000
        is_error = type(reply) is Error
        stats = engine.stats
        stats.count_call(command, duration_us, is_error)
        if is_error:
            stats.count_error(reply)
        if duration_us >= 1000 or not engine.slowlog.coarse:
            engine.slowlog.note(session, command, words, duration_us)
        engine.latency.note_command(command, duration_us)
        if engine.monitors and not flags & _UNSEEN_BY_MONITORS:
            feed_monitors(session, words)
        if engine.notifications.is_holding:
            engine.notifications.release()
        if engine.memory_limit.usage is not None:
            engine.memory_limit.used(session, command, words)
        caller = run.caller
        if caller.tracking is not None and not caller.tracking.broadcast and "readonly" in flags:
            engine.tracked.remember(caller, run.command, run.args)
        if is_error or (type(reply) is Encoded and reply[:1] == b"-"):
            return True, bytes(reply) if is_error else bytes(reply[1:-2])
        kind = type(reply)
        if kind is int or (kind is bytes and len(reply) < _LARGE_BYTES):
            return reply
        sandbox.unlimited()
        made = self._conversion.made(reply)
        if type(made) is not bytes:
            sandbox.limited()
        elif sandbox.has_room(len(made)):
            sandbox.limited()
        else:
            sandbox.limited()
            return False, b"ERR not enough memory"
        return made

    def _take_writer(self, run: ScriptRun, command: Command) -> None:
        """From here on nobody else writes, so what follows can be written. Raises StoreHeld: nothing is done yet."""
        engine = self._engine
        if command.group == "pubsub":
            engine.hub.check_writer()
        engine.keyspace.writing()
        run.writes = True

    def _forbidden(self, run: ScriptRun, command: Command, words: list[bytes]) -> bytes | None:
        from rlite_pubsub.engine.access.permission import note, refusal_of  # as in dispatch.py

        limits = self._session.limits
        assert limits is not None
        refusal = refusal_of(limits, command, words)
        if refusal is None:
            return None
        note(run.caller, refusal, words, b"lua")
        return b"ERR The user executing the script " + _DENIED[refusal.reason]

    def _rejected(self, command: Command | None, text: bytes) -> tuple[bool, bytes]:
        stats = self._engine.stats
        stats.count_error(text)
        if command is not None:
            stats.count_rejected(command)
        return True, text

    def interrupt(self) -> bool:
        """Whether the script must end now. One that has been running for too long is said to be busy: whoever asks for
        anything meanwhile is told so, or may end it."""
        if self._load_until:
            return monotonic() > self._load_until
        run = self.running
        if run is None:
            return False
        try:
            if self._engine.scripts.refusal is None:
                threshold_ms = self._engine.settings["busy-reply-threshold"]
                if not threshold_ms or (monotonic() - run.since) * 1000 < threshold_ms:
                    return run.is_killed
                self._announce(run)
            self._serve_others(run)
        except BaseException as failure:  # it must not pass through Lua
            run.reason = failure
            return True
        return run.is_killed

    def _announce(self, run: ScriptRun) -> None:
        if self._engine.serve_beside is None:
            return
        log.warning(
            "Slow script detected: still in execution after %d milliseconds. You can try killing the script using the "
            "%s command. Script name is: %s.",
            (monotonic() - run.since) * 1000,
            "SCRIPT KILL" if run.is_eval else "FUNCTION KILL",
            run.name.decode("latin-1"),
        )
        self._engine.scripts.refusal = BUSY_SCRIPT if run.is_eval else BUSY_FUNCTION
        self._engine.look_out()

    def _serve_others(self, run: ScriptRun) -> None:
        """Law 5: what acknowledges a change, or may tell of one, waits for the end of this turn, and what is said
        behind it."""
        engine = self._engine
        serve_beside = engine.serve_beside
        if serve_beside is None:
            return
        hub = engine.hub
        hub.close_run()
        executing, unacknowledged = engine.tracked.executing, len(engine.unacknowledged)
        try:
            serve_beside(run.caller)
        finally:
            engine.tracked.executing = executing
            del engine.unacknowledged[unacknowledged:]  # what is answered meanwhile stands behind no commit
        waiting = {session for session, _ in engine.unacknowledged}
        dirty, hub.dirty = hub.dirty, []
        for session in dirty:
            if session in waiting or session in hub.withheld or session.holds_names:
                hub.dirty.append(session)
                continue
            session.dirty = False
            if session.outbox.flush(session) and session.closing:
                session.close_now()

    def log(self, level: int, text: bytes) -> None:
        """For the server's log."""
        if level >= _VERBOSITY.index(self._engine.settings["loglevel"]):
            log.log(_LEVELS[level], "%s", text.decode("utf-8", "backslashreplace"))

    def set_protocol(self, protocol: int) -> None:
        """Replies are to be those of RESP2 or RESP3 from now on."""
        self._session.protocol = self._conversion.protocol = protocol

    def check_permission(self, *args: Any) -> bool | None:
        """Whether the user may execute this; None: there is no such command."""
        words = [argument(each) or b"" for each in args]
        try:
            command = TABLE.resolve(words)
        except CommandError:
            return None
        limits = self._session.limits
        if limits is None:
            return True
        from rlite_pubsub.engine.access.permission import refusal_of

        return refusal_of(limits, command, words) is None


def runner_of(engine: Engine) -> Runner:
    """The engine's runner; it is made when the first script comes."""
    runner: Runner | None = engine.scripts.runner
    if runner is None:
        runner = engine.scripts.runner = Runner(engine, engine.redis_version)
    return runner
