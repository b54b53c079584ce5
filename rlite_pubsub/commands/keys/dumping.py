"""DUMP and RESTORE: a key's value as bytes that redis-server 7.0.15 understands, and back.

Every type that is kept here; any other one is as bad a format as a broken payload. A payload is read as a whole before
anything is changed.
"""

from __future__ import annotations

import logging
from typing import Final

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.eviction.usage import MOST, Often
from rlite_pubsub.engine.payloads import build, payload_of, read
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.protocol.replies import OK, Reply

log: Final = logging.getLogger("rlite_pubsub")

_BUSY = b"BUSYKEY Target key name already exists."
_BAD_TTL = b"ERR Invalid TTL value, must be >= 0"
_BAD_IDLE_TIME = b"ERR Invalid IDLETIME value, must be >= 0"
_BAD_FREQUENCY = b"ERR Invalid FREQ value, must be >= 0 and <= 255"
_BAD_SEAL = b"ERR DUMP payload version or checksum are wrong"
_BAD_FORMAT = b"ERR Bad data format"
_IDLE_CLOCK_SECONDS = 1 << 24
"""Redis has a clock of 24 bits for when a key was used."""


@command(
    "dump",
    arity=2,
    flags="readonly",
    group="generic",
    since="2.6.0",
    categories="keyspace",
    summary="Return a serialized version of the value stored at the specified key.",
    complexity="O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects "
    "composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) "
    "where M is small, so simply O(1).",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def dump(session: CommandSession, args: list[bytes]) -> Reply:
    record = find(session, args[1])
    return None if record is None else payload_of(record)


@command(
    "restore",
    arity=-4,
    flags="write denyoom",
    group="generic",
    since="2.6.0",
    categories="keyspace dangerous",
    summary="Create a key using the provided serialized value, previously obtained using DUMP.",
    complexity="O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the "
    "number of Redis objects composing the value and M their average size. For small string values the time complexity "
    "is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is "
    "O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("ttl", "integer"),
        Arg("serialized-value"),
        Arg("replace", "pure-token", token="REPLACE", optional=True, since="3.0.0"),
        Arg("absttl", "pure-token", token="ABSTTL", optional=True, since="5.0.0"),
        Arg("seconds", "integer", token="IDLETIME", optional=True, since="5.0.0"),
        Arg("frequency", "integer", token="FREQ", optional=True, since="5.0.0"),
    ),
    key_specs=(KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(
        ("3.0.0", "Added the `REPLACE` modifier."),
        ("5.0.0", "Added the `ABSTTL` modifier."),
        ("5.0.0", "Added the `IDLETIME` and `FREQ` options."),
    ),
)
def restore(session: CommandSession, args: list[bytes]) -> Reply:
    key = args[1]
    words, idle_s, frequency = _options(args)
    existing = for_change(session, key)
    if existing is not None and b"replace" not in words:
        raise CommandError(_BUSY)
    ttl_ms = integer(args[2])
    if ttl_ms < 0:
        raise CommandError(_BAD_TTL)
    if not envelope.is_sealed(args[3], sum_counts=session.engine.payload_sums_count):
        raise CommandError(_BAD_SEAL)
    try:
        image = read(args[3])
    except Malformed as failure:
        log.info("RESTORE: a payload's integrity check failed: %s", failure)
        raise CommandError(_BAD_FORMAT) from None

    keyspace, notifications = keyspace_of(session), session.engine.notifications
    if existing is not None:
        keyspace.remove(existing)
    now_ms = keyspace.clock_ms()
    expires_ms = ttl_ms if not ttl_ms or b"absttl" in words else ttl_ms + now_ms
    if expires_ms and not now_ms < expires_ms <= LONG_MAX:
        if existing is not None:
            notifications.tell("g", b"del", session.db, key)
        return OK
    record = build(keyspace, session.db, key, image)
    if expires_ms:
        keyspace.set_expiry(record, expires_ms)
    usage, now = session.engine.memory_limit.usage, session.engine.clock()
    if isinstance(usage, Often):
        if frequency is not None:
            usage.set(session.db, key, frequency, now)
    elif idle_s is not None:
        record.touch(now - idle_s % _IDLE_CLOCK_SECONDS)
    notifications.tell("g", b"restore", session.db, key)
    return OK


def _options(args: list[bytes]) -> tuple[set[bytes], int | None, int | None]:
    """Return the words that were said, IDLETIME and FREQ."""
    words: set[bytes] = set()
    idle_s = frequency = None
    rest = iter(args[4:])
    for word in rest:
        option = word.lower()
        words.add(option)
        if option in (b"replace", b"absttl"):
            continue
        value = next(rest, None)
        if value is None or option not in (b"idletime", b"freq") or {b"idletime", b"freq"} <= words:
            raise CommandError(SYNTAX)
        number = integer(value)
        if option == b"idletime":
            if number < 0:
                raise CommandError(_BAD_IDLE_TIME)
            idle_s = number
        elif not 0 <= number <= MOST:
            raise CommandError(_BAD_FREQUENCY)
        else:
            frequency = number
    return words, idle_s, frequency
