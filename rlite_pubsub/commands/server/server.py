"""The server itself: what time it has, that all is saved, how it ends, and what it looks like.

What is committed is saved, so SAVE and its kin only bring it to the disk, and the last save is always now: but where
there is a target for backups, they mean that (engine/backups.py).
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.engine import REDIS_VERSION
from rlite_pubsub.engine.refusal import sync_store
from rlite_pubsub.engine.scripts.busy import end
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.waits.backup_wait import BackupWait
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Reply, Status, Verbatim
from rlite_pubsub.version import __version__


@command(
    "time",
    arity=1,
    flags="loading stale fast",
    group="server",
    since="2.6.0",
    summary="Return the current server time",
    complexity="O(1)",
    tips=("nondeterministic_output",),
)
def time(session: CommandSession, args: list[bytes]) -> Reply:
    seconds, microseconds = divmod(int(session.engine.clock() * 1_000_000), 1_000_000)
    return [b"%d" % seconds, b"%d" % microseconds]


# -- saving


@command(
    "lastsave",
    arity=1,
    flags="loading stale fast",
    group="server",
    since="1.0.0",
    categories="admin dangerous",
    summary="Get the UNIX time stamp of the last successful save to disk",
    complexity="O(1)",
    tips=("nondeterministic_output",),
)
def lastsave(session: CommandSession, args: list[bytes]) -> Reply:
    backups = session.engine.backups
    if not backups.are_wanted:
        return int(session.engine.clock())
    state = backups.state
    return state.as_of_ms // 1000 if state is not None else 0


@command(
    "save",
    arity=1,
    flags="no_async_loading admin noscript no_multi",
    group="server",
    since="1.0.0",
    summary="Synchronously save the dataset to disk",
    complexity="O(N) where N is the total number of keys in all databases",
)
def save(session: CommandSession, args: list[bytes]) -> Reply:
    if session.engine.backups.are_wanted:
        session.wait_for(BackupWait(session))
        return NO_REPLY
    sync_store(session.engine.syncing)
    return OK


@command(
    "bgsave",
    arity=-1,
    flags="no_async_loading admin noscript",
    group="server",
    since="1.0.0",
    summary="Asynchronously save the dataset to disk",
    complexity="O(1)",
    arguments=(Arg("schedule", "pure-token", token="SCHEDULE", optional=True, since="3.2.2"),),
    history=(("3.2.2", "Added the `SCHEDULE` option."),),
)
def bgsave(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 2 or (len(args) == 2 and args[1].lower() != b"schedule"):
        raise CommandError(SYNTAX)
    if session.engine.backups.are_wanted:
        session.engine.backups.begin()
    else:
        sync_store(session.engine.syncing)
    return Status(b"Background saving scheduled" if session.deny_blocking else b"Background saving started")


@command(
    "bgrewriteaof",
    arity=1,
    flags="no_async_loading admin noscript",
    group="server",
    since="1.0.0",
    summary="Asynchronously rewrite the append-only file",
    complexity="O(1)",
)
def bgrewriteaof(session: CommandSession, args: list[bytes]) -> Reply:
    sync_store(session.engine.syncing)
    when = b"scheduled" if session.deny_blocking else b"started"
    return Status(b"Background append only file rewriting %b" % when)


# -- the end


@command(
    "shutdown",
    arity=-1,
    flags="admin noscript loading stale no_multi sentinel allow_busy",
    group="server",
    since="1.0.0",
    summary="Synchronously save the dataset to disk and then shut down the server",
    complexity="O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise "
    "O(1)",
    arguments=(
        Arg(
            "nosave_save",
            "oneof",
            optional=True,
            arguments=(Arg("nosave", "pure-token", token="NOSAVE"), Arg("save", "pure-token", token="SAVE")),
        ),
        Arg("now", "pure-token", token="NOW", optional=True, since="7.0.0"),
        Arg("force", "pure-token", token="FORCE", optional=True, since="7.0.0"),
        Arg("abort", "pure-token", token="ABORT", optional=True, since="7.0.0"),
    ),
    history=(("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers."),),
)
def shutdown(session: CommandSession, args: list[bytes]) -> Reply:
    options = {arg.lower() for arg in args[1:]}
    if not options <= {b"nosave", b"save", b"now", b"force", b"abort"} or {b"nosave", b"save"} <= options:
        raise CommandError(SYNTAX)
    if b"abort" in options:
        if len(options) > 1:
            raise CommandError(SYNTAX)
        raise CommandError(b"ERR No shutdown in progress.")
    if b"now" not in options and session.deny_blocking:
        raise CommandError(b"ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client")
    stop = session.engine.shutdown
    if stop is None:
        raise CommandError(b"ERR Errors trying to SHUTDOWN: no server runs here, the store is embedded")
    if not end(session) and b"nosave" not in options:
        sync_store(session.engine.syncing)
    stop()
    return NO_REPLY


# -- what it looks like

_BELL = r"""
         _
       .' '.
      /     \      a message
      |     |      for
     /_______\     every subscriber
         o
"""


@command(
    "lolwut",
    arity=-1,
    flags="readonly fast",
    group="server",
    since="5.0.0",
    summary="Display some computer art and the Redis version",
    arguments=(Arg("version", "integer", token="VERSION", optional=True),),
)
def lolwut(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) >= 3 and args[1].lower() == b"version":
        integer(args[2])
    return Verbatim(f"{_BELL}\nRedis ver. {REDIS_VERSION}, rlite-pubsub {__version__}\n".encode())
