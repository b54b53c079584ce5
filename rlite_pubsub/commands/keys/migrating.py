"""MIGRATE: keys are moved, or copied, to another server.

What is sent is what DUMP says. Where Redis lets everybody wait until the other server has answered, only the session
does here; a key that is changed meanwhile stays, and the client gets an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from rlite_pubsub.commands.connection.login import whole_if_held
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find, keyspace_of
from rlite_pubsub.engine.payloads import payload_of
from rlite_pubsub.engine.refusal import failed
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE, Arg, KeySpec, command
from rlite_pubsub.engine.waits.thread_wait import ThreadWait
from rlite_pubsub.protocol.encoder import bulk_array, encode
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.peer import Peer
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Error, Reply, Status

_KEY = KeySpec(("RW", "ACCESS", "DELETE"), ("index", 3), ("range", 0, 1, 0))
_KEYS = KeySpec(("RW", "ACCESS", "DELETE", "INCOMPLETE"), ("keyword", "KEYS", -2), ("range", -1, 1, 0))
_NO_KEY = Status(b"NOKEY")
_NOT_EMPTY = b"ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
_NOT_CONNECTED = b"IOERR error or timeout connecting to the client"
_NOT_WRITTEN = b"IOERR error or timeout writing to target instance"
_NOT_READ = b"IOERR error or timeout reading to target instance"
_REFUSED = b"ERR Target instance replied with error: %b"
_CHANGED = b"ERR '%b' was changed while it was moved, and stays: the target instance has it as it was"
_WORDS_BEHIND = {b"AUTH": 1, b"AUTH2": 2}
_DEFAULT_TIMEOUT_MS = 1000
_REDACTED = b"(redacted)"


class _Order(NamedTuple):
    """The arguments of MIGRATE."""

    host: str
    port: int
    database: int
    timeout_s: float
    keeps: bool
    replaces: bool
    login: list[bytes]
    names: list[bytes]


class _SentKey(NamedTuple):
    """One key."""

    name: bytes
    version: int
    """Of what was sent."""


class _Outcome(NamedTuple):
    """The outcome of a migration."""

    refusal: bytes | None
    arrived: Sequence[_SentKey] = ()


def _keys_of_migrate(args: list[bytes]) -> list[tuple[int, KeySpec]] | None:
    place = 6
    while place < len(args):
        word = args[place].upper()
        if word == b"KEYS":  # beside a key it is a syntax error, and no key is used
            return [] if args[3] else [(key, _KEYS) for key in range(place + 1, len(args))]
        place += 1 + _WORDS_BEHIND.get(word, 0)  # a password may be KEYS, too
    return [(3, _KEY)]


@command(
    "migrate",
    arity=-6,
    flags="write movablekeys",
    group="generic",
    since="2.6.0",
    categories="keyspace dangerous",
    summary="Atomically transfer a key from a Redis instance to another one.",
    complexity="This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the target "
    "instance. See the pages of these commands for time complexity. Also an O(N) data transfer between the two "
    "instances is performed.",
    arguments=(
        Arg("host"),
        Arg("port", "integer"),
        Arg(
            "key_or_empty_string",
            "oneof",
            arguments=(Arg("key", "key", key_spec=0), Arg("empty_string", "pure-token", token="")),
        ),
        Arg("destination-db", "integer"),
        Arg("timeout", "integer"),
        Arg("copy", "pure-token", token="COPY", optional=True, since="3.0.0"),
        Arg("replace", "pure-token", token="REPLACE", optional=True, since="3.0.0"),
        Arg(
            "authentication",
            "oneof",
            optional=True,
            arguments=(
                Arg("password", token="AUTH", optional=True, since="4.0.7"),
                Arg(
                    "username_password",
                    "block",
                    token="AUTH2",
                    optional=True,
                    since="6.0.0",
                    arguments=(Arg("username"), Arg("password")),
                ),
            ),
        ),
        Arg("key", "key", token="KEYS", optional=True, multiple=True, key_spec=1, since="3.0.6"),
    ),
    key_specs=(_KEY, _KEYS),
    find_keys=_keys_of_migrate,
    tips=("nondeterministic_output",),
    history=(
        ("3.0.0", "Added the `COPY` and `REPLACE` options."),
        ("3.0.6", "Added the `KEYS` option."),
        ("4.0.7", "Added the `AUTH` option."),
        ("6.0.0", "Added the `AUTH2` option."),
    ),
)
def migrate(session: CommandSession, args: list[bytes]) -> Reply:
    original = list(args)
    order = _order(args)
    with whole_if_held(args, original):
        return _migrate(session, order)


def _migrate(session: CommandSession, order: _Order) -> Reply:
    keyspace = keyspace_of(session)
    now_ms = keyspace.clock_ms()
    requests = [bulk_array(tuple(order.login))] if order.login else []
    requests.append(bulk_array((b"SELECT", b"%d" % order.database)))
    introduced = len(requests)
    sent: list[_SentKey] = []
    for name in order.names:
        record = find(session, name)
        if record is None:
            continue
        ttl_ms = max(record.expires_ms - now_ms, 1) if record.expires_ms else 0
        words = b"RESTORE", name, b"%d" % ttl_ms, payload_of(record)
        requests.append(bulk_array((*words, b"REPLACE") if order.replaces else words))
        sent.append(_SentKey(name, keyspace.version(session.db, name)))
    if not sent:
        return _NO_KEY
    work = partial(_transfer, order, b"".join(requests), introduced, sent)
    if session.deny_blocking:
        return _finish(session, order, session.db, work())
    database = session.db
    session.wait_for(ThreadWait(session, work, lambda outcome: _said(session, order, database, outcome)))
    return NO_REPLY


def _order(args: list[bytes]) -> _Order:
    keeps = replaces = False
    login: list[bytes] = []
    names = [args[3]]
    place = 6
    while place < len(args):
        option, more = args[place].upper(), len(args) - place - 1
        if option == b"COPY":
            keeps = True
        elif option == b"REPLACE":
            replaces = True
        elif (option == b"AUTH" and more) or (option == b"AUTH2" and more >= 2):
            count = 1 if option == b"AUTH" else 2
            login = [b"AUTH", *args[place + 1 : place + 1 + count]]
            args[place + 1 : place + 1 + count] = [_REDACTED] * count  # MONITOR and SLOWLOG show them
            place += count
        elif option == b"KEYS":
            if args[3]:
                raise CommandError(_NOT_EMPTY)
            names = args[place + 1 :]
            break
        else:
            raise CommandError(SYNTAX)
        place += 1
    timeout_ms, database = integer(args[5]), integer(args[4])
    if timeout_ms <= 0:
        timeout_ms = _DEFAULT_TIMEOUT_MS
    port = int(args[2]) if args[2].isdigit() else 0
    host = args[1].decode("latin-1")
    return _Order(host, port, database, timeout_ms / 1000, keeps, replaces, login, names)


def _transfer(order: _Order, requests: bytes, introduced: int, sent: list[_SentKey]) -> _Outcome:
    """Speak with the other server, for as long as each step may take. `introduced`: this many answers come before those
    to the keys. As in Redis each is a line, which begins with - if it is a refusal; what begins with neither that nor +
    is no answer, and the key stays."""
    try:
        peer = Peer(order.host, order.port, order.timeout_s)
    except ConnectionRefusedError:  # Redis connects without waiting, and meets it when it writes
        return _Outcome(_NOT_WRITTEN)
    except (OSError, OverflowError, UnicodeError):
        return _Outcome(_NOT_CONNECTED)
    arrived: list[_SentKey] = []
    with closing(peer):
        try:
            peer.send(requests)
        except OSError:
            return _Outcome(_NOT_WRITTEN)
        try:
            introductions = [_answer(peer) for _ in range(introduced)]
            refusals = [line for line in introductions if line]
            is_welcome = not refusals
            for each in sent:
                refusal = _answer(peer)
                if refusal:
                    refusals.append(refusal)
                elif is_welcome:
                    arrived.append(each)
        except OSError:
            return _Outcome(_NOT_READ, arrived)
    if refusals:
        return _Outcome(_REFUSED % refusals[0], arrived)
    return _Outcome(None, arrived)


def _answer(peer: Peer) -> bytes:
    """What the other server refuses with; nothing if it does not. Raises OSError where it says nothing in time, or what
    is no answer."""
    line = peer.line()
    if line[:1] == b"+":
        return b""
    if line[:1] == b"-":
        return line[1:] or b"?"
    raise ConnectionError("the other side does not answer as a server does")


def _said(session: CommandSession, order: _Order, database: int, outcome: _Outcome) -> bytes:
    try:
        reply = _finish(session, order, database, outcome)
    except Exception as failure:
        reply = failed(session.engine.keyspace, TABLE.resolve([b"migrate"]), failure)
    return encode(reply, session.protocol)


def _finish(session: CommandSession, order: _Order, database: int, outcome: _Outcome) -> Reply:
    """Remove what has arrived; what is to be answered."""
    keyspace, notifications = keyspace_of(session), session.engine.notifications
    refusal = outcome.refusal
    for each in outcome.arrived if not order.keeps else ():
        if keyspace.version(database, each.name) != each.version:
            refusal = refusal or _CHANGED % each.name
        elif keyspace.delete(database, each.name):
            notifications.tell("g", b"del", database, each.name)
    return OK if refusal is None else Error(refusal)
