"""A script's run, as one command: its calls are executed here, and only its end is answered.

Promises, as of redis-server 7.0.15 (script.c):
 - A script is one command of its turn, so there is one commit for it. Its writes stay, however it ends.
 - Time stands still for keys: none expires while a script runs.
 - It waits for nobody (law 9): a command that would block answers at once, and if another process is writing the
   script stops before it has changed anything, and is run again.
 - It may do what the user who runs it may, and no more.

The path of a call is short on purpose: BullMQ's scripts have a dozen of them. So a command is looked up once
(`Callee`), and most replies are handed to Lua as they are.
"""

from __future__ import annotations

import logging
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import i64

from rlite_pubsub.engine.refusal import failed, unwritten
from rlite_pubsub.engine.scripts.busy import is_over
from rlite_pubsub.engine.scripts.cache import ALLOW_STALE, NO_WRITES, Flags, Program, Script, shebang
from rlite_pubsub.engine.scripts.conversions import NOT_HANDED, Conversion, Refusal, argument, flat, handed
from rlite_pubsub.engine.scripts.crossing import Run
from rlite_pubsub.engine.scripts.run import ScriptRun, ScriptSession, reply_of
from rlite_pubsub.engine.scripts.sandbox import Registered, Sandbox, SyntaxFailure
from rlite_pubsub.engine.shards.sharding import NOT_LOCAL
from rlite_pubsub.engine.stats.monitor import feed_monitors
from rlite_pubsub.engine.stats.slowlog import COARSE_US
from rlite_pubsub.engine.table import TABLE, Command
from rlite_pubsub.protocol import errors
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Encoded, Error, Map, Reply, SetReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.session import CommandSession

log: Final = logging.getLogger("rlite_pubsub")

MAX_BYTES: Final = 256 << 20
"""Of memory for all that scripts hold at once."""
_LONGEST_LOGGED: Final = 1 << 20
"""Bytes of a text for the log, which takes many times as much until it is there."""
_LEVELS: Final = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING)
_VERBOSITY: Final = (b"debug", b"verbose", b"notice", b"warning")
_DENIED: Final = {
    b"command": b"can't run this command or subcommand",
    b"key": b"can't access at least one of the keys mentioned in the command arguments",
    b"channel": b"can't publish to the channel mentioned in the command",
}
_SPELLINGS: Final = TABLE.spellings
_UNSEEN_BY_MONITORS: Final = frozenset(("skip_monitor", "admin"))
_nanoseconds: Final = perf_counter_ns
_ERROR: Final = Error
_ENCODED: Final = Encoded
_FLATTENED: Final = frozenset((Map, dict, SetReply))


class Callee:
    """A command as scripts call it: the parts of its declaration that a call needs, looked up once."""

    __slots__ = ("adds", "changes", "command", "fewest", "handler", "is_allowed", "is_seen", "most", "reads", "writes")

    def __init__(self, command: Command) -> None:
        flags = command.flags
        self.command = command
        self.handler = command.handler
        self.fewest = command.fewest
        self.most = command.most
        self.is_allowed = "noscript" not in flags
        self.reads = "readonly" in flags
        self.writes = "write" in flags
        self.adds = "denyoom" in flags
        self.changes = self.writes or "may_replicate" in flags
        self.is_seen = flags.isdisjoint(_UNSEEN_BY_MONITORS)


class OldReads(Exception):
    """Before the script's first write, another process has changed what the script has read: it must start over."""


class Callees:
    """All commands that the scripts of one Lua have called so far."""

    def __init__(self) -> None:
        self.by_word: dict[bytes, Callee] = {}
        """By the first word of what is called, as scripts mostly write it."""

    def find(self, words: list[bytes]) -> Callee:
        """Return a command's declaration, in any spelling. Raises CommandError if there is none."""
        word = words[0]
        command = _SPELLINGS.get(word)
        if command is None or command.subcommands:
            return Callee(TABLE.resolve(words))
        callee = self.by_word[word] = Callee(command)
        return callee


class Runner:
    """The Lua of one engine, and its runs."""

    def __init__(self, engine: Engine, version: str) -> None:
        """`version`: the Redis version that scripts see."""
        self._engine = engine
        self._session = ScriptSession(engine)
        self._session.deny_blocking = self._session.in_script = True
        self.sandbox = Sandbox(self, version, MAX_BYTES)
        self._used_bytes: Callable[[], int] = self.sandbox.crossing.used_bytes
        self._swept_at_bytes = self.sandbox.swept_at_bytes
        self._conversion = Conversion(self.sandbox.table)
        self._crossing = self.sandbox.crossing
        self.run_script = self._crossing.run_script
        self.run_function = self._crossing.run_function
        self.running: ScriptRun | None = None
        self._load_until = 0.0  # 0: no library is loaded
        self._callees = Callees()

    # -- scripts and libraries

    def load(self, sha: bytes, body: bytes) -> Script:
        """Compile a script and keep it. Raises CommandError."""
        flags, begins = shebang(body)
        try:
            function = self.sandbox.compile(body[begins:], b"@user_script")
        except SyntaxFailure as failure:
            raise CommandError(b"ERR Error compiling script (new function): %b" % failure.text) from None
        script = Script(sha, body, flags, self._crossing.callable(function))
        self._engine.scripts.add(script)
        return script

    def load_library(self, source: bytes, seconds: float) -> list[Registered]:
        """Return the functions that a library's code registers. Raises SyntaxFailure, and LoadFailure, also if it takes
        longer than this."""
        self._load_until = monotonic() + seconds
        try:
            return self.sandbox.load_library(source)
        finally:
            self._load_until = 0.0

    def run(
        self,
        caller: CommandSession,
        args: list[bytes],
        call: Run,
        program: Program,
        keys: int,
        read_only: bool,
    ) -> Reply:
        """Run a program for this session, whose request is `args`: after the third argument come this many keys. `call`
        is `run_script` or `run_function`. Raises CommandError; StoreHeld, if it must wait."""
        try:
            return self._run(caller, args, call, program, keys, read_only)
        except OldReads:  # it holds the writer's lock now, so what it reads cannot change
            return self._run(caller, args, call, program, keys, read_only)

    def _run(
        self,
        caller: CommandSession,
        args: list[bytes],
        call: Run,
        program: Program,
        keys: int,
        read_only: bool,
    ) -> Reply:
        """Run it once. Raises OldReads, having done nothing."""
        assert self.running is None
        engine = self._engine
        keyspace = engine.keyspace
        lack: bytes | None = None
        if not engine.plain:
            flags = program.flags
            says_that_it_writes = flags is not None and NO_WRITES not in flags
            engine.replication.check_script(caller, says_that_it_writes, flags is not None and ALLOW_STALE in flags)
            if says_that_it_writes and engine.replication.master is None and engine.replicas.are_too_few:
                raise CommandError(errors.NO_REPLICAS)
            lack = self._lack()
        if program.flags is not None:
            self._check_flags(program, program.flags, read_only, lack)
        size_bytes = 64 * len(args)
        for each in args:
            size_bytes += len(each)
        if self._used_bytes() + size_bytes >= MAX_BYTES and (
            size_bytes > MAX_BYTES or not self.sandbox.has_room(size_bytes)
        ):
            raise CommandError(b"ERR Error running script %b, not enough memory" % program.name)
        session = self._session
        session.db = caller.db
        if session.protocol != 2:
            self.set_protocol(2)
        session.limits, session.user = caller.limits, caller.user
        session.no_touch = caller.no_touch
        cold = keyspace.cold.shelf
        may_miss = cold is not None and cold.may_miss
        if cold is not None:
            cold.may_miss = False
        scripts = engine.scripts
        run = self.running = scripts.running = ScriptRun(caller, args, program, read_only, lack)
        engine.freeze_time()
        keyspace.times.begin_whole()
        try:
            outcome = call(program.called, caller.protocol, args, keys)
        finally:
            self.running = scripts.running = None
            keyspace.times.end_whole()
            engine.unfreeze_time()
            if scripts.refusal is not None or scripts.all_commands:
                scripts.refusal = None
                engine.look_out()
            if cold is not None:
                cold.may_miss = may_miss
            if session.said:
                session.said.clear()
        if self._used_bytes() > self._swept_at_bytes:
            self.sandbox.sweep()
        kind = type(outcome)
        if kind is bytes or kind is int:
            return outcome
        if run.reason is not None:
            raise run.reason
        if kind is not tuple:
            return outcome
        return reply_of(engine.stats, run, outcome)

    def _lack(self) -> bytes | None:
        """Return why nothing can be added to the store; None if it can."""
        engine = self._engine
        if engine.memory_limit.bytes and not engine.memory_limit.makes_room():
            return errors.OUT_OF_MEMORY
        if engine.keyspace.environment.room.full is not None:
            lack = engine.housekeeping.make_room()
            if lack is not None:
                return unwritten(lack)
        return None

    def _check_flags(self, program: Program, flags: Flags, read_only: bool, lack: bytes | None) -> None:
        if NO_WRITES in flags:
            return
        if read_only:
            raise CommandError(b"ERR Can not execute a script with write flag using *_ro command.")
        if not program.allows_oom and lack is not None:
            raise CommandError(
                b"OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
            )

    # -- the ScriptHost of sandbox.py

    def execute_packed(self, packed: bytes) -> Any:
        """Like `execute`, for arguments too many for a call: each after its length and a newline."""
        words: list[bytes] = []
        at = 0
        while at < len(packed):
            begins = packed.index(b"\n", at) + 1
            at = begins + int(packed[at:begins])
            words.append(packed[begins:at])
        return self.execute(*words)

    def execute(self, *args: Any) -> Any:
        """Execute a command for the running script."""
        words: list[bytes] = []
        for each in args:
            word = each if type(each) is bytes else argument(each)
            if word is None:
                return False, b"ERR Lua redis lib command arguments must be strings or integers"
            words.append(word)
        if not words:
            return False, b"ERR Please specify at least one argument for this redis lib call"
        if not self.has_room():
            return False, b"ERR not enough memory"
        return self._handed(self.execute_words(words))

    def fetch(self) -> Any:
        """Return the reply of `execute_words`, if it was not handed over at once."""
        return self._handed(self._crossing.take())

    def has_room(self) -> bool:
        """Return whether Lua has room for a reply."""
        return self._used_bytes() <= MAX_BYTES or self.sandbox.has_room(0)

    def execute_words(self, words: list[bytes]) -> Any:
        """Execute a command for the running script; return its reply, or a Refusal."""
        run = self.running
        assert run is not None
        try:
            return self._execute(run, words)
        except BaseException as failure:  # it must not pass through Lua
            run.reason = failure
            return Refusal(None, b"")

    def _execute(self, run: ScriptRun, words: list[bytes]) -> Any:
        callee = self._callees.by_word.get(words[0])
        if callee is None:
            try:
                callee = self._callees.find(words)
            except CommandError:
                return self._rejected(None, b"ERR Unknown Redis command called from script")
        command, handler = callee.command, callee.handler
        if not callee.fewest <= len(words) <= callee.most or handler is None:
            return self._rejected(command, b"ERR Wrong number of args calling Redis command from script")
        engine = self._engine
        if not callee.is_allowed and not engine.scripts.all_commands:
            return self._rejected(command, b"ERR This Redis command is not allowed from script")
        if not engine.plain and "stale" not in command.flags and engine.replication.hides_stale_data:
            return self._rejected(command, b"ERR Can not execute the command on a stale replica")
        session = self._session
        if session.limits is not None:
            refusal = self._forbidden(run, command, words)
            if refusal is not None:
                return self._rejected(command, refusal)
        if not engine.quiet and not engine.sharding.has_all(command, words):
            return self._rejected(command, NOT_LOCAL)
        if callee.changes:
            if run.read_only:
                return self._rejected(command, b"ERR Write commands are not allowed from read-only scripts.")
            if not run.writes:
                self._take_writer(run, command)
            if callee.writes:
                if not engine.plain and engine.replication.refuses_writes_of(run.caller):
                    return self._rejected(command, errors.READ_ONLY_REPLICA)
                if run.lack is not None and not run.is_dirty and not run.allows_oom and callee.adds:
                    return self._rejected(command, run.lack)
                if not run.is_dirty and not engine.plain and engine.replicas.are_too_few:
                    return self._rejected(command, errors.NO_REPLICAS)
                run.is_dirty = True
        run.has_called = True
        session.last_command = command
        is_told = not engine.plain and engine.outgoing.is_on
        if is_told:
            engine.outgoing.settle()
        began: i64 = _nanoseconds()
        try:
            reply = handler(session, words)
            if is_told:
                engine.outgoing.executed(run.caller.id, session.db, command, words, reply)
        except CommandError as refused:
            reply = _ERROR(refused.text)
        except Exception as failure:
            reply = failed(engine.keyspace, command, failure)
        ended: i64 = _nanoseconds()
        duration_us = (ended - began) // 1000
        kind = type(reply)
        is_error = kind is _ERROR
        stats = engine.stats
        stats.count_call(command, duration_us, is_error)
        if duration_us >= COARSE_US or not engine.plain:
            self._tell(run, callee, words, duration_us)
        if kind is bytes or kind is int or kind is list or reply is None:  # as most
            return reply
        if is_error:
            stats.count_error(reply)
            return Refusal(True, bytes(reply))
        if kind is _ENCODED and reply[:1] == b"-":
            return Refusal(True, bytes(reply[1:-2]))
        return flat(reply) if kind in _FLATTENED and session.protocol == 2 else reply

    def _tell(self, run: ScriptRun, callee: Callee, words: list[bytes], duration_us: int) -> None:
        """Notify those who want to know that a command was executed."""
        engine, session, command = self._engine, self._session, callee.command
        engine.slowlog.note(session, command, words, duration_us)
        engine.latency.note_command(command, duration_us)
        if callee.is_seen and engine.monitors:
            feed_monitors(session, words)
        if engine.notifications.is_holding:
            engine.notifications.release()
        if engine.memory_limit.usage is not None:
            engine.memory_limit.used(session, command, words)
        tracking = run.caller.tracking
        if tracking is not None and not tracking.broadcast and callee.reads:
            engine.tracked.remember(run.caller, run.command, run.args)

    def _handed(self, reply: Any) -> Any:
        """Hand a reply to Lua by lupa."""
        if type(reply) is Refusal:
            return reply.kind, reply.text
        ready = handed(reply, self._session.protocol)
        return ready if ready is not NOT_HANDED else self._made(reply)

    def _made(self, reply: Reply) -> Any:
        sandbox = self.sandbox
        sandbox.unlimited()
        made = self._conversion.made(reply)
        has_room = type(made) is not bytes or sandbox.has_room(len(made))
        sandbox.limited()
        return made if has_room else (False, b"ERR not enough memory")

    def _take_writer(self, run: ScriptRun, command: Command) -> None:
        """Take the writer's lock, so that what follows can be written. Raises StoreHeld, and OldReads if another
        process has written since the script read: nothing has been done yet."""
        engine = self._engine
        if command.group == "pubsub":
            engine.hub.check_writer()
        stored = engine.keyspace.stored
        commits = stored.commits_of_others
        engine.keyspace.writing()
        if run.has_called and stored.commits_of_others != commits:
            raise OldReads
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

    def _rejected(self, command: Command | None, text: bytes) -> Refusal:
        stats = self._engine.stats
        stats.count_error(text)
        if command is not None:
            stats.count_rejected(command)
        return Refusal(True, text)

    def interrupt(self) -> bool:
        """Return whether the running script must end now."""
        if self._load_until:
            return monotonic() > self._load_until
        run = self.running
        return run is not None and is_over(self._engine, run)

    def log(self, level: int, text: bytes) -> None:
        """Write a line to the server's log."""
        if level >= _VERBOSITY.index(self._engine.settings["loglevel"]):
            log.log(_LEVELS[level], "%s", text[:_LONGEST_LOGGED].decode("utf-8", "backslashreplace"))

    def set_protocol(self, protocol: int) -> None:
        """Reply in RESP2 or RESP3 from now on."""
        self._session.protocol = self._conversion.protocol = protocol
        self._crossing.set_protocol(protocol)

    def check_permission(self, *args: Any) -> bool | None:
        """Return whether the user may execute this; None if there is no such command."""
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
    """Return the engine's runner, made for the first script."""
    runner: Runner | None = engine.scripts.runner
    if runner is None:
        runner = engine.scripts.runner = Runner(engine, engine.redis_version)
    return runner
