"""A request's way: look up, check in Redis's order, queue or call, answer.

Most requests go the plain way: nothing about their session (`CommandSession.plain`), the engine (`Engine.plain`) or the
command (`Command.is_plain`) makes them different, so there is nothing to check but the number of arguments, and the
reply goes out. All others go the long way, and after each of them dispatch looks whether the next may go the plain way.

Handlers raise, only dispatch logs, replies and closes. The order of the checks is processCommand's of Redis 7.0.15,
because it decides which of two errors a client sees.
"""

from __future__ import annotations

import logging
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from rlite_pubsub.engine.refusal import answers, failed, refusal, replace, unwritten
from rlite_pubsub.engine.scripts.declared import queued_flags
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.segment_pieces import SegmentMiss
from rlite_pubsub.engine.shards.sharding import Redirect
from rlite_pubsub.engine.stats.monitor import feed_monitors
from rlite_pubsub.engine.stats.slowlog import COARSE_US
from rlite_pubsub.engine.table import TABLE, Command
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.protocol import errors
from rlite_pubsub.protocol.batch import Run
from rlite_pubsub.protocol.encoder import encode, put
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, QUEUED, Error, Push, Replies, Reply
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.publish import unsent
from rlite_pubsub.pubsub.route import NOBODY, Route
from rlite_pubsub.storage.agenda import OUTBOXES
from rlite_pubsub.storage.errors import PartlySent, StoreError, StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
    from rlite_pubsub.pubsub.hub import Hub

log: Final = logging.getLogger("rlite_pubsub")

_WHILE_SUBSCRIBED: Final = frozenset(
    (
        b"ping",
        b"subscribe",
        b"ssubscribe",
        b"psubscribe",
        b"unsubscribe",
        b"sunsubscribe",
        b"punsubscribe",
        b"quit",
        b"reset",
        b"subscriber.detach",
        b"topic.subscribe",
        b"topic.unsubscribe",
    )
)
_NEVER_QUEUED: Final = frozenset((b"exec", b"discard", b"multi", b"watch", b"quit", b"reset"))
_QUEUES_NOTHING: Final = frozenset((b"discard", b"quit", b"reset"))
_OF_SESSIONS: Final = frozenset(("connection", "transactions"))
_OF_CHANNELS: Final = frozenset(("pubsub",))
_OF_THE_KEYSPACE: Final = frozenset(("readonly", "write", "may_replicate"))
"""What a session that watches with MONITOR may not do; Redis takes it for a kind of replica."""
_UNSEEN_BY_MONITORS: Final = frozenset(("skip_monitor", "admin"))
_SPELLINGS: Final = TABLE.spellings
_ERROR: Final = Error
_nanoseconds: Final = perf_counter_ns
_SCRIPTING: Final = "scripting"
_HTTP: Final = frozenset((b"post", b"host:"))
_PUSHED: Final = frozenset((Push, Replies))
"""Replies of SUBSCRIBE and its kin: messages to the peer, which CLIENT REPLY OFF does not silence."""


def execute(session: CommandSession, args: list[bytes]) -> bool:
    """Execute one request and answer it. Returns False if it must wait: hand it in again when the session is resumed.

    If the session is blocked afterwards, the requests that follow wait until it is resumed.
    """
    engine = session.engine
    if session.plain and engine.plain:
        command = _SPELLINGS.get(args[0])
        if command is not None and command.is_plain and execute_plainly(session, command, [args], 0):
            return True
    is_done = _execute(session, args)
    last = session.last_command
    if last is None or not last.is_plain:
        engine.look_out()
        session.look_at_itself()
    elif not session.plain:
        session.look_at_itself()
    return is_done


def execute_plainly(
    session: CommandSession, command: Command, requests: list[list[bytes] | Run] | list[list[bytes]], at: int
) -> int:
    """Execute the request at `at`, and those after it that name the same command, while only the client needs to hear
    of them. Returns the place of the first request that was not done. `session`, its engine and the command are plain.

    Each is timed from the end of the one before; they are answered together.
    """
    engine = session.engine
    keyspace = engine.keyspace
    first = requests[at]
    if isinstance(first, Run):
        return at
    word = first[0]
    handler, fewest, most = command.handler, command.fewest, command.most
    assert handler is not None
    cold = keyspace.cold if command.reads_topics else None
    if command.group in _OF_CHANNELS and (keyspace.turn.writes or session.hub.retaining is not None):
        return at  # `_say_kept`
    if command.group == _SCRIPTING:
        neighbours = session.hub.neighbours
        if neighbours is not None and neighbours.hint[0] != neighbours.seen:
            return at  # `_look_around`, before the first of them
    hub = session.hub if command.group == _SCRIPTING else None  # what scripts publish is looked at
    end = len(requests)
    turn, stats, protocol = keyspace.turn, engine.stats, session.protocol
    parts: list[bytes] = []
    began_at = at
    session.last_command = command
    behind_a_commit = turn.writes or turn.failure is not None
    quick = 0  # calls that took less than a microsecond
    began: i64 = _nanoseconds()
    while at < end:
        args = requests[at]
        if isinstance(args, Run) or args[0] != word or not fewest <= len(args) <= most:
            break
        if cold is not None and cold.shelf is not None:
            break  # any of them may find that there is a cold store
        try:
            reply = handler(session, args)
        except CommandError as refusal:
            reply = Error(refusal.text)
        except StoreHeld:
            break  # it has done nothing: the long way makes it wait
        except Exception as failure:
            reply = failed(keyspace, command, failure)
        if not behind_a_commit and (turn.writes or turn.failure is not None):
            if parts:
                _say(session, parts, 0)
                parts = []
            behind_a_commit = True
            began_at = at
        at += 1
        if hub is not None and hub.postponed:
            if parts:
                _say(session, parts, at - 1 - began_at if behind_a_commit else 0)
                parts = []
            began_at = at
            _say_postponed(session, answer(session, reply), rests_on_keys=behind_a_commit)
        elif at == end and not parts:
            parts.append(encode(reply, protocol))
        else:
            put(parts, reply, protocol)
        ended: i64 = _nanoseconds()
        spent = ended - began
        began = ended
        is_error = type(reply) is _ERROR
        if is_error:
            stats.count_error(reply)
        if spent >= 1000 or is_error:
            duration_us = spent // 1000
            stats.count_call(command, duration_us, is_error)
            if duration_us >= COARSE_US:
                engine.slowlog.note(session, command, args, duration_us)
                engine.latency.note_command(command, duration_us)
        else:
            quick += 1
        if keyspace.ready:
            engine.waiting.serve()
            began = _nanoseconds()
    if quick:
        stats.count_calls(command, quick, 0)
    if parts:
        _say(session, parts, at - began_at if behind_a_commit else 0)
    return at


def _say(session: CommandSession, parts: list[bytes], unacknowledged: int) -> None:
    """Put replies into the outbox; they acknowledge this many requests, once there is a commit."""
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    if unacknowledged:
        if unacknowledged > 1:
            data = answers(data, unacknowledged)
        session.engine.unacknowledged.append((session, data))
    session.said.append(data)
    if not session.dirty:
        session.dirty = True
        hub = session.hub
        hub.dirty.append(session)
        hub.agenda.due |= OUTBOXES


def _execute(session: CommandSession, args: list[bytes]) -> bool:
    if len(args[0]) < 6 and args[0].lower() in _HTTP:
        _refuse_http(session)
        return True
    session.last_command = None
    if session.engine.scripts.refusal is None:  # else this is in the middle of another's turn
        _look_around(session.hub)
    try:
        command = session.last_command = TABLE.resolve(args)
        _check(session, command, args)
    except CommandError as refusal:
        reject(session, args, refusal)
    else:
        if session.engine.pause.holds(session, command, args):
            return False
        if session.tracking is not None:
            session.engine.tracked.limit()
        transaction = session.transaction
        if transaction is not None and command.name not in _NEVER_QUEUED:
            if not transaction.aborted and not session.cas_broken:
                transaction.queue.append((command, args))
            answer(session, QUEUED)
        else:
            engine = session.engine
            if engine.outgoing.is_on:
                engine.outgoing.begin_unit()
            engine.tracked.executing = session
            keyspace = engine.keyspace
            cold = keyspace.cold.shelf
            try:
                if cold is None:
                    call(session, command, args)
                elif not _called(session, command, args, cold):
                    return False
            except StoreHeld:  # the session is in line
                return False
            except SegmentMiss as miss:
                engine.chains.pieces.park(session, miss)
                return False
            finally:
                engine.tracked.executing = None
            if keyspace.ready and engine.scripts.refusal is None:  # nobody is served in the midst of a script
                engine.waiting.serve()
    if session.skip_replies and session.blocked is None:
        session.skip_replies >>= 1
    if session.tracking is not None:
        session.tracking.after_command(session)
    if session.engine.tracked.pending:
        session.engine.tracked.tell_pending(session)
    return True


def _called(session: CommandSession, command: Command, args: list[bytes], cold: Shelf) -> bool:
    """Like `call`. Returns False if the command must wait for the cold store: nothing was done."""
    cold.may_miss = "readonly" in command.flags
    stats = session.engine.stats
    hits, misses = stats.keyspace_hits, stats.keyspace_misses
    try:
        call(session, command, args)
    except ColdMiss as miss:
        stats.keyspace_hits, stats.keyspace_misses = hits, misses
        session.engine.cold_waits.park(session, miss)
        return False
    finally:
        cold.may_miss = False
    if session.engine.cold_waits:
        session.engine.cold_waits.done(session)
    return True


def _look_around(hub: Hub) -> None:
    """Look up, before a transaction or a script, who receives the events of its keys and what it publishes: a look in
    the middle could end the store's transaction in which it changes keys."""
    try:
        hub.look_around()
    except StoreError:
        pass  # PUBLISH meets it again, and says so


def call(session: CommandSession, command: Command, args: list[bytes]) -> None:
    """Call the handler, count, time and log it, and answer."""
    engine, hub = session.engine, session.hub
    handler = command.handler
    assert handler is not None
    outgoing = engine.outgoing
    is_told = outgoing.is_on
    if is_told:
        outgoing.settle()
    start = perf_counter_ns()
    try:
        reply = handler(session, args)
        if is_told:
            outgoing.executed(session.id, session.db, command, args, reply)
    except CommandError as refusal:
        reply = Error(refusal.text)
    except (ColdMiss, SegmentMiss):
        raise
    except StoreHeld as held:
        if session.obeys_master or (not session.deny_blocking and engine.writer_waits.park(session, held)):
            raise
        reply = Error(unwritten(held))
        if not session.deny_blocking and session.transaction is not None:
            session.discard()  # it was EXEC
    except Exception as failure:
        reply = failed(engine.keyspace, command, failure)
    duration_us = (perf_counter_ns() - start) // 1000
    is_error = reply.__class__ is Error
    if is_error:
        engine.stats.count_error(reply)
    blocked = session.blocked
    if blocked is None:
        engine.stats.count_call(command, duration_us, is_error)
        engine.slowlog.note(session, command, args, duration_us)
    else:
        engine.stats.count_blocked(command, duration_us)
        blocked.began(command, args, duration_us)
    engine.latency.note_command(command, duration_us)
    if engine.memory_limit.usage is not None:
        engine.memory_limit.used(session, command, args)
    if (
        session.tracking is not None
        and not session.tracking.broadcast
        and "readonly" in command.flags
        and command.group != _SCRIPTING  # the runner remembers what a script reads
    ):
        engine.tracked.remember(session, command, args)
    answered = answer(session, reply)
    if engine.notifications.is_holding:
        engine.notifications.release()
    turn = engine.keyspace.turn
    if (turn.writes or turn.failure is not None) and answered is not None:
        if command.group in _OF_CHANNELS:
            if not is_error:
                _say_kept(session, command, args, answered)
        elif _rests_on_keys(command) and not hub.postponed:
            engine.unacknowledged.append((session, answered))
    if hub.postponed:
        _say_postponed(session, answered, rests_on_keys=command.group == _SCRIPTING)
    if engine.monitors and not command.flags & _UNSEEN_BY_MONITORS:
        feed_monitors(session, args)


def _rests_on_keys(command: Command) -> bool:
    """Return whether the command's answer is void if the turn cannot be committed. MULTI and its kin change their
    session, and that change stays: an EXEC may come in a later turn."""
    return command.group not in _OF_SESSIONS or command.name == b"exec"


def _say_kept(session: CommandSession, command: Command, args: list[bytes], answered: bytes) -> None:
    """Let replies stand that do not depend on keys: those of publishing and subscribing. A PUBLISH to a retained
    channel is the exception: the message becomes an entry with the commit only, though subscribers hear it in any case.
    """
    route = session.hub.route(CHANNELS, args[1]) if command.name == b"publish" else NOBODY
    if route.topic is not None and session.said and session.said[-1] is answered:
        kept = session.said[-1] = answers(answered, 1, is_heard=route.receivers > 0)
        session.engine.unacknowledged.append((session, kept))


def _say_postponed(session: CommandSession, answered: bytes | None, *, rests_on_keys: bool) -> None:
    """This reply acknowledges what is published at the turn's end. A script's acknowledges keys, too: where these can't
    be committed, what it has published is heard nevertheless."""
    hub = session.hub
    routes = hub.take_postponed()
    if answered is None:
        return
    if rests_on_keys:
        is_heard = any(route.receivers for route in routes)
        answered = session.said[-1] = answers(answered, 1, is_heard=is_heard)
        session.engine.unacknowledged.append((session, answered))
    if any(route.address is not None for route in routes):
        hub.on_failed_send(session, partial(_take_back_postponed, session, session.said[-1], routes, rests_on_keys))


def _take_back_postponed(
    session: CommandSession, said: bytes, routes: list[Route], is_script: bool, failure: Exception
) -> None:
    """It could not be brought to other processes."""
    replace(session.said, [(said, refusal(PartlySent(failure) if is_script else unsent(routes[0], failure)))])


def answer(session: CommandSession, reply: Reply) -> bytes | None:
    """Write a reply, unless the client wants none. Returns what was written."""
    if reply is NO_REPLY:
        return None
    if (session.replies_off or session.skip_replies & 1) and reply.__class__ not in _PUSHED:
        return None
    part = encode(reply, session.protocol)
    session.send(part)
    return part


def reject(session: CommandSession, args: list[bytes], refusal: CommandError) -> None:
    """Answer a request that was not called, and spoil the transaction it was meant for."""
    engine = session.engine
    text = refusal.text
    command = session.last_command
    if session.transaction is not None:
        session.transaction.abort()
    if command is not None:
        engine.stats.count_rejected(command)
        if command.name == b"exec":
            session.discard()
            if not isinstance(refusal, Redirect):
                text = b"EXECABORT Transaction discarded because of: " + text.removeprefix(b"ERR ")
    engine.stats.count_error(text)
    answer(session, Error(text))
    if command is not None and command.name == b"exec":
        feed_monitors(session, args)


def _check(session: CommandSession, command: Command, args: list[bytes]) -> None:
    """Check that this command may be executed or queued now. Raises CommandError."""
    if not command.accepts(len(args)):
        raise errors.wrong_arity(command.name)
    flags = command.flags
    if "protected" in flags:
        session.engine.check_protected(session, command)
    if not session.authenticated and "no_auth" not in flags:
        raise CommandError(errors.NO_AUTH)
    if session.transaction is not None and "no_multi" in flags:
        raise CommandError(errors.NOT_IN_TRANSACTION)
    if session.limits is not None:
        # most commands have no use for it, and a program waits for imports
        from rlite_pubsub.engine.access.permission import check

        check(session, session.limits, command, args)
    sharding = session.engine.sharding
    if sharding.directory is not None:
        sharding.check(session, command, args)
    if session.engine.memory_limit.bytes:
        _check_memory(session, command, args)
    if session.engine.keyspace.environment.room.full is not None:
        _check_room(session, command, args)
    if session.engine.settings["min-replicas-to-write"]:
        _check_replicas(session, command, args)
    if session.engine.replication.master is not None:
        session.engine.replication.check(session, command, _asked(session, command, args))
    if session.protocol == 2 and session.holds_names and command.name not in _WHILE_SUBSCRIBED:
        raise CommandError(
            b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
            b"context" % command.name
        )
    refusal = session.engine.scripts.refusal
    if refusal is not None and "allow_busy" not in flags:
        raise CommandError(refusal)
    if session.engine.monitors and flags & _OF_THE_KEYSPACE and session in session.engine.monitors:
        raise CommandError(b"ERR Replica can't interact with the keyspace")


def _asked(session: CommandSession, command: Command, args: list[bytes]) -> list[frozenset[str]]:
    """Return the flags of what is to be executed or queued: of the command, and for EXEC of each that is queued. What a
    script declares counts in a transaction; outside of one its runner checks it."""
    transaction = session.transaction
    if transaction is None:
        return [command.flags]
    scripts, libraries = session.engine.scripts, session.engine.libraries
    if command.name == b"exec":
        return [command.flags, *[queued_flags(scripts, libraries, *queued) for queued in transaction.queue]]
    return [queued_flags(scripts, libraries, command, args)]


def _check_memory(session: CommandSession, command: Command, args: list[bytes]) -> None:
    """Obey `maxmemory`: make room for a command that may add data, or refuse it; the same goes for a command to be
    queued. Raises CommandError."""
    limit = session.engine.memory_limit
    if session.transaction is None:
        if "denyoom" in command.flags and not limit.has_room(command, args):
            raise CommandError(errors.OUT_OF_MEMORY)
        return
    if command.name == b"exec":
        adds = any(["denyoom" in flags for flags in _asked(session, command, [])])
    else:
        adds = command.name not in _QUEUES_NOTHING
    if adds and not limit.makes_room():
        raise CommandError(errors.OUT_OF_MEMORY)


def _check_replicas(session: CommandSession, command: Command, args: list[bytes]) -> None:
    """Obey `min-replicas-to-write`. Raises CommandError."""
    writes = any(["write" in flags for flags in _asked(session, command, args)])
    if writes and session.engine.replication.master is None and session.engine.replicas.are_too_few:
        raise CommandError(errors.NO_REPLICAS)


def _check_room(session: CommandSession, command: Command, args: list[bytes]) -> None:
    """Refuse a command that adds data, queued or not, while the store is full. Raises CommandError."""
    if any(["denyoom" in flags for flags in _asked(session, command, args)]):
        lack = session.engine.housekeeping.make_room()
        if lack is not None:
            if session.obeys_master:
                raise lack  # a command from the master is done, if not now, then later
            raise CommandError(unwritten(lack))


def _refuse_http(session: CommandSession) -> None:
    log.warning(
        "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to the server. "
        "This is likely an attempt at Cross Protocol Scripting. Connection from %s aborted.",
        session.address,
    )
    session.close_now()
