"""DEBUG: what test suites need to bring a server into a corner. Allowed as `enable-debug-command` says."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from hashlib import sha1
from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.help import help_reply
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.encodings import encoding, references
from rlite_pubsub.engine.payloads import payload_of
from rlite_pubsub.engine.refusal import sync_store
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.config_file import rewrite
from rlite_pubsub.engine.settings.spelling import memory
from rlite_pubsub.engine.table import command
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.encoder import bulk, double, error
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, CommandError, subcommand_syntax
from rlite_pubsub.protocol.replies import OK, Encoded, Map, Push, Replies, Reply, SetReply, Status, Verbatim

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.records import Record


# -- DEBUG DIGEST: one number that differs where any key, value or expiry does, computed as redis-server 7.0.15 does it.
# Both servers with the same keys have the same digest, so that a test can compare all they hold at once. It takes as
# long as it takes, with nothing else going on: that is what DEBUG is for.

BYTES = 20
_STRING, _LIST, _SET, _SORTED_SET, _HASH, _STREAM = 0, 1, 2, 3, 4, 6
"""Redis's numbers of types."""


class Digest:
    """A number that things are put into, in or out of order."""

    def __init__(self) -> None:
        self._number = 0

    def add(self, other: bytes) -> None:
        """Put in a digest; the order does not matter."""
        self._number ^= int.from_bytes(other, "big")

    def mix(self, data: bytes) -> None:
        """Put in data behind what is there."""
        self.add(sha1(data).digest())
        self._number = int.from_bytes(sha1(self.value).digest(), "big")

    def mix_record(self, record: Record) -> None:
        """Put in what a key holds, and whether it expires."""
        if isinstance(record, Text):
            self.mix(_STRING.to_bytes(4, "big"))
            self.mix(record.value)
        elif isinstance(record, Topic):
            self.mix(_STREAM.to_bytes(4, "big"))
            self._mix_entries(record)
        elif isinstance(record, List):
            self.mix(_LIST.to_bytes(4, "big"))
            for element in record.walk():
                self.mix(element)
        elif isinstance(record, Set):
            self.mix(_SET.to_bytes(4, "big"))
            for member in record.members():
                self.add(sha1(member).digest())
        elif isinstance(record, Hash):
            self.mix(_HASH.to_bytes(4, "big"))
            for field in record.fields():
                self._add_all(field.name, field.value)
        elif isinstance(record, SortedSet):
            self.mix(_SORTED_SET.to_bytes(4, "big"))
            for member, score in record.walk():
                self._add_all(member, double(score))
        if record.expires_ms:
            self.add(sha1(b"!!expire!!").digest())

    def _add_all(self, *parts: bytes) -> None:
        """Put in the digest of these, one behind the other."""
        one = Digest()
        for part in parts:
            one.mix(part)
        self.add(sha1(one.value).digest())

    def _mix_entries(self, topic: Topic) -> None:
        for part in topic.between():
            for entry in part.chunk.entries(part.start, part.stop):
                entry_id, *fields = _bulks(entry)
                self.mix(entry_id.replace(b"-", b"."))
                for field in fields:
                    self.mix(field)

    @property
    def value(self) -> bytes:
        return self._number.to_bytes(BYTES, "big")


def _bulks(wire: bytes) -> Iterator[bytes]:
    """Yield the bulk strings in arrays of them."""
    at = 0
    while at < len(wire):
        end = wire.index(b"\r\n", at)
        if wire[at : at + 1] == b"$":
            length = int(wire[at + 1 : end])
            yield wire[end + 2 : end + 2 + length]
            end += 2 + length
        at = end + 2


def of_key(keyspace: Keyspace, database: int, name: bytes) -> bytes:
    """Return the digest of what one key holds; zero if there is none."""
    digest = Digest()
    record = keyspace.find(database, name)
    if record is not None:
        digest.mix_record(record)
    return digest.value


def of_all(keyspace: Keyspace) -> bytes:
    """Return the digest of all databases."""
    whole = Digest()
    for database in keyspace.databases.numbers():
        whole.mix(database.to_bytes(4, "big"))
        for name in [name for name, _ in keyspace.databases.walk(database)]:
            record = keyspace.find(database, name)
            if record is not None:
                one = Digest()
                one.mix(name)
                one.mix_record(record)
                whole.add(sha1(one.value).digest())
    return whole.value


log = logging.getLogger("rlite_pubsub")

_NOT_POSITIVE = b"ERR value is out of range, must be positive"
_DECIMAL = re.compile(rb"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NUMBER = re.compile(rb"\s*[+-]?\d+")
_LARGEST_PACKED = (4 << 30) - (1 << 20)
_BIG_NUMBER = b"1234567999999999999999999999999999999"


@command(
    "debug",
    arity=-2,
    flags="admin noscript loading stale protected",
    group="server",
    since="1.0.0",
    summary="A container for debugging commands",
    complexity="Depends on subcommand.",
    doc_flags=("syscmd",),
)
def debug(session: CommandSession, args: list[bytes]) -> Reply:
    found = _SUBCOMMANDS.get(args[1].lower())
    if found is None:
        raise subcommand_syntax(args)
    least, most, subcommand = found
    if len(args) < least or (most and len(args) > most):
        raise subcommand_syntax(args)
    return subcommand(session, args)


def _sleep(session: CommandSession, args: list[bytes]) -> Reply:
    """Blocks the whole server: that is what it is for."""
    number = _DECIMAL.match(args[2])
    time.sleep(max(float(number[0]), 0.0) if number else 0.0)
    return OK


def _log(session: CommandSession, args: list[bytes]) -> Reply:
    log.warning("DEBUG LOG: %s", args[2].decode("latin-1"))
    return OK


def _error(session: CommandSession, args: list[bytes]) -> Reply:
    """Sent as it is: it is not our error, so nothing counts it."""
    return Encoded(error(args[2]))


def _reload(session: CommandSession, args: list[bytes]) -> Reply:
    """The store is what is in memory: once it is synced there is nothing to load. Upon libraries that are there Redis
    can't load the same ones, unless they are to be merged with."""
    options = {arg.lower() for arg in args[2:]}
    if not options <= {b"merge", b"noflush", b"nosave"}:
        raise CommandError(b"ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
    engine = session.engine
    sync_store(engine.syncing)
    if b"noflush" in options and b"merge" not in options and engine.libraries.known.libraries:
        raise CommandError(b"ERR Error trying to load the RDB dump, check server logs.")
    return OK


def _switch_expiry(session: CommandSession, args: list[bytes]) -> Reply:
    """Keys whose time is over are gone either way; without it they are removed when they are looked for."""
    number = _NUMBER.match(args[2])
    session.engine.expiry.is_on = bool(number and int(number[0]))
    return OK


def _allow_all_to_scripts(session: CommandSession, args: list[bytes]) -> Reply:
    """Set whether scripts may call even commands that are denied to them."""
    number = _NUMBER.match(args[2])
    session.engine.scripts.all_commands = bool(number and int(number[0]))
    return OK


def _pack_threshold(session: CommandSession, args: list[bytes]) -> Reply:
    size = memory(args[2])
    if size is None or size > _LARGEST_PACKED:
        raise CommandError(b"ERR argument must be a memory value bigger than 1 and smaller than 4gb")
    return OK


def _pause_cron(session: CommandSession, args: list[bytes]) -> Reply:
    number = _NUMBER.match(args[2])
    session.engine.sampler.paused = bool(number and int(number[0]))
    return OK


def _rewrite_config(session: CommandSession, args: list[bytes]) -> Reply:
    path = session.engine.config_file
    if path is None:
        raise CommandError(b"ERR CONFIG-REWRITE-FORCE-ALL failed: the server is running without a config file")
    try:
        rewrite(path, session.engine.settings, everything=True)
    except OSError as failure:
        raise CommandError(f"ERR CONFIG-REWRITE-FORCE-ALL failed: {failure.strerror}".encode()) from failure
    return OK


_FRAME_BYTES = 11
"""Of a payload: the type, the version and the sum."""


def _object(session: CommandSession, args: list[bytes]) -> Reply:
    record = keyspace_of(session).find(session.db, args[2])
    if record is None:
        raise CommandError(NO_SUCH_KEY)
    shares_integers = session.engine.memory_limit.shares_integers
    idle_s = max(0, int(session.engine.clock() - record.used_at))
    used_at = int(record.used_at) & 0xFFFFFF
    return Status(
        b"Value at:%#x refcount:%d encoding:%b serializedlength:%d lru:%d lru_seconds_idle:%d"
        % (
            id(record),
            references(record, shares_integers=shares_integers),
            encoding(record),
            record.stored_bytes if isinstance(record, Topic) else len(payload_of(record)) - _FRAME_BYTES,
            used_at,
            idle_s,
        )
    )


def _string_length(session: CommandSession, args: list[bytes]) -> Reply:
    if keyspace_of(session).find(session.db, args[2]) is None:
        raise CommandError(NO_SUCH_KEY)
    raise CommandError(b"ERR Not an sds encoded string.")


def _digest(session: CommandSession, args: list[bytes]) -> Reply:
    return Status(of_all(keyspace_of(session)).hex().encode())


def _digest_values(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace = keyspace_of(session)
    return [Status(of_key(keyspace, session.db, key).hex().encode()) for key in args[2:]]


def _hash_tables(session: CommandSession, args: list[bytes]) -> Reply:
    if integer(args[2]) not in range(session.engine.settings["databases"]):
        raise CommandError(b"ERR Out of range database")
    empty = b"Hash table 0 stats (main hash table):\nNo stats available for empty dictionaries\n"
    return Verbatim(b"[Dictionary HT]\n%b[Expires HT]\n%b" % (empty, empty))


def _hash_table_of(session: CommandSession, args: list[bytes]) -> Reply:
    if keyspace_of(session).find(session.db, args[2]) is None:
        raise CommandError(NO_SUCH_KEY)
    raise CommandError(b"ERR The value stored at the specified key is not represented using an hash table")


def _populate(session: CommandSession, args: list[bytes]) -> Reply:
    """Add strings under the names that are free."""
    count = integer(args[2], 0, refusal=_NOT_POSITIVE)
    prefix = args[3] if len(args) > 3 else b"key"
    size = integer(args[4], 0, refusal=_NOT_POSITIVE) if len(args) > 4 else 0
    keyspace = keyspace_of(session)
    for number in range(count):
        name = b"%b:%d" % (prefix, number)
        if keyspace.for_change(session.db, name) is None:
            value = b"value:%d" % number
            keyspace.put_string(session.db, name, value[:size].ljust(size, b"\0") if size else value)
    return OK


def _skip_sums(session: CommandSession, args: list[bytes]) -> Reply:
    """Set whether RESTORE accepts payloads whose sum is wrong: a suite breaks them on purpose."""
    number = _NUMBER.match(args[2])
    session.engine.payload_sums_count = not (number and int(number[0]))
    return OK


def _protocol(session: CommandSession, args: list[bytes]) -> Reply:
    """A sample of each type of reply."""
    kind = args[2].lower()
    three = session.protocol >= 3
    if kind == b"bignum":
        return Encoded(b"(%b\r\n" % _BIG_NUMBER if three else bulk(_BIG_NUMBER))
    if kind == b"attrib":
        attribute = Encoded(b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n" if three else b"")
        return Replies([attribute, b"Some real reply following the attribute"])
    if kind == b"push":
        if not three:
            raise CommandError(b"ERR RESP2 is not supported by this command")
        return Replies([Push([b"server-cpu-usage", 42]), b"Some real reply following the push reply"])
    if kind not in _SAMPLES:
        raise CommandError(
            b"ERR Wrong protocol type name. Please use one of the following: "
            b"string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
        )
    return _SAMPLES[kind]


_SAMPLES: dict[bytes, Reply] = {
    b"string": b"Hello World",
    b"integer": 12345,
    b"double": 3.141,
    b"null": None,
    b"array": [0, 1, 2],
    b"set": SetReply([0, 1, 2]),
    b"map": Map([(0, False), (1, True), (2, False)]),
    b"true": True,
    b"false": False,
    b"verbatim": Verbatim(b"This is a verbatim\nstring"),
}


def _help(session: CommandSession, args: list[bytes]) -> Reply:
    return help_reply(
        args,
        "CONFIG-REWRITE-FORCE-ALL",
        "    Like CONFIG REWRITE but writes all configuration options, including",
        "    keywords not listed in original configuration file or default values.",
        "DIGEST",
        "    Output a hex signature representing the current DB content.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Output a hex signature of the values of all the specified keys.",
        "ERROR <string>",
        "    Return a Redis protocol error with <string> as message.",
        "HTSTATS <dbid>",
        "    Return hash table statistics of the specified Redis database.",
        "HTSTATS-KEY <key>",
        "    Refused: no value is a hash table here.",
        "LOADAOF",
        "    Bring the store to the disk; nothing needs to be loaded from it again.",
        "LOG <message>",
        "    Write <message> to the server log.",
        "OBJECT <key>",
        "    Show low level info about `key` and associated value.",
        "PAUSE-CRON <0|1>",
        "    Stop periodic cron job processing.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Create <count> string keys named key:<num>. If <prefix> is specified then",
        "    it is used instead of the 'key' prefix. With <size> each value has so many bytes.",
        "PROTOCOL <type>",
        "    Reply with a test value of the specified type. <type> can be: string,",
        "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
        "    true, false.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Checked, and of no effect: there are no quicklists here.",
        "RELOAD [option ...]",
        "    Bring the store to the disk; nothing needs to be loaded from it again.",
        "SDSLEN <key>",
        "    Show low level SDS string info representing `key` and value.",
        "SET-DISABLE-DENY-SCRIPTS <0|1>",
        "    Scripts may call commands that are not for scripts.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Setting it to 0 disables expiring keys in background when they are not accessed.",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "    RESTORE accepts payloads with a wrong checksum.",
        "SLEEP <seconds>",
        "    Stop the server for <seconds>. Decimals allowed.",
    )


_SUBCOMMANDS: dict[bytes, tuple[int, int, Callable[[CommandSession, list[bytes]], Reply]]] = {
    b"config-rewrite-force-all": (2, 2, _rewrite_config),
    b"digest": (2, 2, _digest),
    b"digest-value": (2, 0, _digest_values),
    b"error": (3, 3, _error),
    b"help": (2, 2, _help),
    b"htstats": (3, 3, _hash_tables),
    b"htstats-key": (3, 3, _hash_table_of),
    b"loadaof": (2, 0, _reload),
    b"log": (3, 3, _log),
    b"object": (3, 3, _object),
    b"pause-cron": (3, 3, _pause_cron),
    b"populate": (3, 5, _populate),
    b"protocol": (3, 3, _protocol),
    b"quicklist-packed-threshold": (3, 3, _pack_threshold),
    b"reload": (2, 0, _reload),
    b"sdslen": (3, 3, _string_length),
    b"set-active-expire": (3, 3, _switch_expiry),
    b"set-disable-deny-scripts": (3, 3, _allow_all_to_scripts),
    b"set-skip-checksum-validation": (3, 3, _skip_sums),
    b"sleep": (3, 3, _sleep),
}
"""Subcommand -> least and most arguments (0 for any number), and what it does."""
