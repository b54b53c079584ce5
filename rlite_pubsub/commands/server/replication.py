"""Replication: whose replica the store is, and what its own replicas and those who wait for them ask."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.replicas.replicas import NO_SERVER, NO_SOCKET
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.engine.shards.restrictions import check_unsharded
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.waits.timeouts import timeout_ms
from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, c_string
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Reply, Status
from rlite_pubsub.storage.commons import replica_position

_HOST_BYTES = 256
"""A longer address is no address."""
_NOT_WHILE_A_REPLICA = (
    b"ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured "
    b"to be writable (which is not the default) writes to replicas are just local and are not propagated."
)

_MASTER = (
    Arg(
        "args",
        "oneof",
        arguments=(
            Arg("host-port", "block", arguments=(Arg("host"), Arg("port", "integer"))),
            Arg(
                "no-one",
                "block",
                arguments=(Arg("no", "pure-token", token="NO"), Arg("one", "pure-token", token="ONE")),
            ),
        ),
    ),
)


@command(
    "role",
    arity=1,
    flags="noscript loading stale fast sentinel",
    group="server",
    since="2.8.12",
    categories="admin dangerous",
    summary="Return the role of the instance in the context of replication",
    complexity="O(1)",
)
def role(session: CommandSession, args: list[bytes]) -> Reply:
    replication = session.engine.replication
    if replication.master is None:
        replicas = session.engine.replicas
        stream = replicas.stream()
        online = [one for one in replicas.shown() if one.state == "online"]
        said: list[Reply] = [[one.address, b"%d" % one.port, b"%d" % one.offset] for one in online]
        return [b"master", 0 if stream is None else stream.ends, said]
    host, port = replication.master
    return [b"slave", host, port, replication.link, replication.offset]


@command(
    "replicaof",
    arity=3,
    flags="no_async_loading admin noscript stale",
    group="server",
    since="5.0.0",
    summary="Make the server a replica of another instance, or promote it as master.",
    complexity="O(1)",
    arguments=_MASTER,
)
def replicaof(session: CommandSession, args: list[bytes]) -> Reply:
    return _follow(session, args)


@command(
    "slaveof",
    arity=3,
    flags="no_async_loading admin noscript stale",
    group="server",
    since="1.0.0",
    summary="Make the server a replica of another instance, or promote it as master.",
    complexity="O(1)",
    arguments=_MASTER,
    doc_flags=("deprecated",),
    deprecated_since="5.0.0",
    replaced_by="`REPLICAOF`",
)
def slaveof(session: CommandSession, args: list[bytes]) -> Reply:
    return _follow(session, args)


def _follow(session: CommandSession, args: list[bytes]) -> Reply:
    """The store, and so each of its processes, is another one's replica from now on, or nobody's. What it has of the
    master's history counts as long as it is that one's."""
    check_unsharded(session, b"REPLICAOF", b"not allowed in cluster mode.")
    engine = session.engine
    known = engine.replication.master
    if (args[1].lower(), args[2].lower()) == (b"no", b"one"):
        master = None
    else:
        master = args[1], integer(args[2], 0, 65535, b"ERR Invalid master port")
        if master == known:
            return Status(b"OK Already connected to specified master")
    if master == known:
        return OK
    if master is None or known is None:
        # before the setting: a store that nobody replicates to goes its own way, and is never resumed behind that
        engine.keyspace.environment.write(replica_position.forget, freeing=True)
    try:
        engine.settings.set("replicaof", args[1:])
    except SettingError as refusal:
        raise CommandError(b"ERR " + str(refusal).encode()) from refusal
    return OK


@command(
    "sync",
    arity=1,
    flags="no_async_loading admin no_multi noscript",
    group="server",
    since="1.0.0",
    summary="Internal command used for replication",
)
def sync(session: CommandSession, args: list[bytes]) -> Reply:
    if session.id in session.engine.replication.askers:
        return _send_file(session)
    return session.engine.replicas.attach(session, b"", 0, says_position=False)


@command(
    "psync",
    arity=-3,
    flags="no_async_loading admin no_multi noscript",
    group="server",
    since="2.8.0",
    summary="Internal command used for replication",
    arguments=(Arg("replicationid"), Arg("offset", "integer")),
)
def psync(session: CommandSession, args: list[bytes]) -> Reply:
    """The offset is that of the byte that is wanted next; histories count from 1."""
    offset = integer(args[2])
    if session.id in session.engine.replication.askers:
        return _send_file(session)
    return session.engine.replicas.attach(session, args[1], offset - 1, says_position=True)


def _send_file(session: CommandSession) -> Reply:
    """All keys as they are now, for a client that has said that it wants no more than that (`redis-cli --rdb`): its
    connection is given to a process that sends them."""
    engine = session.engine
    only_functions = engine.replicas.introduce(session).only_functions
    if engine.send_file is None:
        raise CommandError(NO_SERVER)
    descriptor = session.give_socket()
    if descriptor is None:
        raise CommandError(NO_SOCKET)
    engine.send_file(descriptor, only_functions)
    return NO_REPLY


@command(
    "replconf",
    arity=-1,
    flags="admin noscript loading stale allow_busy",
    group="server",
    since="3.0.0",
    summary="An internal command for configuring the replication stream",
    complexity="O(1)",
    doc_flags=("syscmd",),
)
def replconf(session: CommandSession, args: list[bytes]) -> Reply:
    """Note what a replica reports about itself, and its offset; a client that wants only a file says so here, too."""
    if len(args) % 2 == 0:
        raise CommandError(SYNTAX)
    replicas = session.engine.replicas
    for option, value in zip(args[1::2], args[2::2], strict=True):
        match option.lower():
            case b"listening-port":
                replicas.introduce(session).listen_on(integer(value, 0, 65535))
            case b"ip-address":
                if len(value) >= _HOST_BYTES:
                    raise CommandError(
                        b"ERR REPLCONF ip-address provided by replica instance is too long: %d bytes" % len(value)
                    )
                replicas.introduce(session).be_at(value)
            case b"rdb-only":
                wanted = integer(value)
                if wanted not in (0, 1):
                    raise CommandError(b"ERR value is out of range, value must between 0 and 1")
                if wanted:
                    session.engine.replication.askers.add(session.id)
                else:
                    session.engine.replication.askers.discard(session.id)
            case b"rdb-filter-only":
                _check_filter(value)
                replicas.introduce(session).want_only(functions=bool(value.strip()))
            case b"capa":
                replicas.introduce(session).be_able_to(value)
            case b"ack":
                replicas.acknowledge(session, integer(value))
                return NO_REPLY
            case b"getack":
                return NO_REPLY  # only a master's is answered, by the link to it
            case _:
                raise CommandError(b"ERR Unrecognized REPLCONF option: %b" % c_string(option))
    return OK


def _check_filter(value: bytes) -> None:
    words = inline.split(value)
    if words is None:
        raise CommandError(b"ERR Missing rdb-filter-only values")
    for word in words:
        if word.lower() != b"functions":
            raise CommandError(b"ERR Unsupported rdb-filter-only option: %b" % c_string(word))


@command(
    "wait",
    arity=3,
    flags="noscript",
    group="generic",
    since="3.0.0",
    categories="connection",
    summary="Wait for the synchronous replication of all the write commands sent in the context of the current "
    "connection",
    complexity="O(1)",
    arguments=(
        Arg("numreplicas", "integer"),
        Arg("timeout", "integer"),
    ),
    tips=(
        "request_policy:all_shards",
        "response_policy:agg_min",
    ),
)
def wait(session: CommandSession, args: list[bytes]) -> Reply:
    """Wait for the wanted number of replicas to execute this session's writes; answer how many have."""
    engine = session.engine
    if engine.replication.master is not None:
        raise CommandError(_NOT_WHILE_A_REPLICA)
    wanted, wait_ms = integer(args[1]), timeout_ms(args[2])
    if not session.deny_blocking:  # EXEC has done it before, and is not committed by halves
        engine.keyspace.give_way()  # what it has written in this turn is to have a place in the stream
    offset = engine.outgoing.writers.get(session.id, 0)
    count = engine.replicas.acknowledged_by(offset)
    if count >= wanted or session.deny_blocking:
        return count
    engine.replica_waits.begin(session, offset, wanted, wait_ms)
    return NO_REPLY
