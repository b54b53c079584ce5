"""XADD, XLEN, XDEL and XSETID: entries are put into topics and taken out, one by one.

XADD is straight code: it is what a busy server does all day.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_topic, topic_for_change
from rlite_pubsub.engine.arguments.stream_arguments import Addition, addition
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.topics.trimming import read_for_trim, rehearse_trim, trim
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.keyspace.topic.append import next_id
from rlite_pubsub.keyspace.topic.append_rules import check_size
from rlite_pubsub.keyspace.topic.idempotence import known_id, note, once
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_MAX_ENTRY_BYTES: Final = 1 << 30
_ZERO_ID: Final = b"ERR The ID specified in XADD must be greater than 0-0"
_EXHAUSTED: Final = b"ERR The stream has exhausted the last possible ID, unable to add more items"
_NOT_ABOVE: Final = b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
_TOO_LARGE: Final = b"ERR Elements are too large to be stored"
_NO_SUCH_KEY: Final = b"ERR no such key"
_NEGATIVE_ADDED: Final = b"ERR entries_added must be positive"
_BELOW_DELETED: Final = b"ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
_BELOW_TOP: Final = b"ERR The ID specified in XSETID is smaller than the target stream top item"
_FEWER_THAN_THERE: Final = b"ERR The entries_added specified in XSETID is smaller than the target stream length"
_PLAIN: Final = Addition(None, None, 3, may_create=True, trimming=None)
"""`XADD key * field value …`"""


@command(
    "xadd",
    arity=-5,
    flags="write denyoom fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Appends a new entry to a stream",
    complexity="O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("nomkstream", "pure-token", token="NOMKSTREAM", optional=True, since="6.2.0"),
        Arg(
            "trim",
            "block",
            optional=True,
            arguments=(
                Arg(
                    "strategy",
                    "oneof",
                    arguments=(
                        Arg("maxlen", "pure-token", token="MAXLEN"),
                        Arg("minid", "pure-token", token="MINID", since="6.2.0"),
                    ),
                ),
                Arg(
                    "operator",
                    "oneof",
                    optional=True,
                    arguments=(
                        Arg("equal", "pure-token", token="="),
                        Arg("approximately", "pure-token", token="~"),
                    ),
                ),
                Arg("threshold"),
                Arg("count", "integer", token="LIMIT", optional=True, since="6.2.0"),
            ),
        ),
        Arg(
            "id_or_auto",
            "oneof",
            arguments=(
                Arg("auto_id", "pure-token", token="*"),
                Arg("ID"),
            ),
        ),
        Arg(
            "field_value",
            "block",
            multiple=True,
            arguments=(
                Arg("field"),
                Arg("value"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(
            (
                "RW",
                "UPDATE",
            ),
            ("index", 1),
            ("range", 0, 1, 0),
            notes="UPDATE instead of INSERT because of the optional trimming feature",
        ),
    ),
    tips=("nondeterministic_output",),
    history=(
        ("6.2.0", "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option."),
        ("7.0.0", "Added support for the `<ms>-*` explicit ID form."),
    ),
)
def xadd(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = _PLAIN if args[2] == b"*" else addition(args)
    words = tuple(args[wanted.fields_at :])
    if not words or len(words) % 2:
        raise wrong_arity(b"xadd")
    if wanted.ms == 0 and wanted.seq == 0:
        raise CommandError(_ZERO_ID)
    key = args[1]
    engine = session.engine
    keyspace = engine.keyspace
    topic = topic_for_change(session, key)
    if topic is None and not wanted.may_create:
        return None
    wanted_once = None
    if wanted.producer is not None:
        wanted_once = once(wanted.producer, wanted.publication, words)
        known = known_id(topic, wanted_once) if topic is not None else None
        if known is not None:
            return entry_ids.text(known)
    if topic is not None and topic.has_append_rules and not session.obeys_master:
        check_size(topic, sum(map(len, words)))
    last_id = entry_ids.MIN if topic is None else topic.last_id
    if wanted.ms is None:
        entry_id = next_id(last_id, keyspace.clock_ms())
        if entry_id is None:
            raise CommandError(_EXHAUSTED)
    else:
        entry_id = _following(last_id, wanted.ms, wanted.seq)
    text = b"%d-%d" % (entry_id[0], entry_id[1])
    entry = b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, bulk_array(words))
    if len(entry) > _MAX_ENTRY_BYTES and sum(map(len, words)) > _MAX_ENTRY_BYTES:
        raise CommandError(_TOO_LARGE)
    if topic is None:
        topic = keyspace.create_topic(session.db, key)
    limits = engine.node_limits
    if limits is not topic.node_limits and limits != topic.node_limits:
        topic.limit_nodes(limits)
    if wanted.trimming is not None and topic.has_cold:
        rehearse_trim(session, topic, wanted.trimming, 1)
    topic.append(entry_id, entry)
    if wanted_once is not None:
        note(topic, wanted_once, entry_id)
    engine.notifications.tell("t", b"xadd", session.db, key)
    if wanted.trimming is not None:
        trim(session, topic, wanted.trimming)
    return text


@reads_ahead(b"xadd")
def _read_ahead_of_adding(session: CommandSession, args: list[bytes], places: Places) -> None:
    wanted = _PLAIN if args[2] == b"*" else addition(args)
    topic = find_topic(session, args[1])
    if topic is not None and wanted.trimming is not None:
        read_for_trim(topic, wanted.trimming, 1)


@reads_ahead(b"xdel")
def _read_ahead_of_deleting(session: CommandSession, args: list[bytes], places: Places) -> None:
    topic = find_topic(session, args[1])
    if topic is not None and topic.has_cold:
        _look_at(topic, [strict_id(text) for text in args[2:]])


def _look_at(topic: Topic, ids: Iterable[Id]) -> None:
    topic.entries(sorted(set(map(entry_ids.pack, ids))))


def _following(last_id: Id, ms: int, seq: int | None) -> Id:
    """The id that was asked for. Raises CommandError where it does not follow the last one."""
    if last_id == entry_ids.MAX:
        raise CommandError(_EXHAUSTED)
    if seq is None:
        seq = 0
        if ms == last_id[0]:
            seq = last_id[1] + 1
            if seq > entry_ids.PART_MAX:
                raise CommandError(_TOO_LARGE)  # so says Redis, unless an error of before is still on its mind
    if (ms, seq) <= last_id:
        raise CommandError(_NOT_ABOVE)
    return ms, seq


@command(
    "xlen",
    arity=2,
    flags="readonly fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return the number of entries in a stream",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def xlen(session: CommandSession, args: list[bytes]) -> Reply:
    topic = find_topic(session, args[1])
    return 0 if topic is None else topic.length


@command(
    "xdel",
    arity=-3,
    flags="write fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Removes the specified entries from the stream. Returns the number of items actually deleted, that may be "
    "different from the number of IDs passed in case certain IDs do not exist.",
    complexity="O(1) for each single item to delete in the stream, regardless of the stream size.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("ID", multiple=True),
    ),
    key_specs=(
        KeySpec(
            (
                "RW",
                "DELETE",
            ),
            ("index", 1),
            ("range", 0, 1, 0),
        ),
    ),
)
def xdel(session: CommandSession, args: list[bytes]) -> Reply:
    topic = topic_for_change(session, args[1])
    if topic is None:
        return 0
    ids = [strict_id(text) for text in args[2:]]
    rehearse(session, topic, lambda: _look_at(topic, ids))
    deleted = topic.delete(ids)
    if deleted:
        session.engine.notifications.tell("t", b"xdel", session.db, args[1])
    return deleted


@command(
    "xsetid",
    arity=-3,
    flags="write denyoom fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="An internal command for replicating stream values",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("last-id"),
        Arg("entries_added", "integer", token="ENTRIESADDED", optional=True, since="7.0.0"),
        Arg("max_deleted_entry_id", token="MAXDELETEDID", optional=True, since="7.0.0"),
    ),
    key_specs=(
        KeySpec(
            (
                "RW",
                "UPDATE",
            ),
            ("index", 1),
            ("range", 0, 1, 0),
        ),
    ),
    history=(("7.0.0", "Added the `entries_added` and `max_deleted_entry_id` arguments."),),
)
def xsetid(session: CommandSession, args: list[bytes]) -> Reply:
    last_id = strict_id(args[2])
    entries_added, max_deleted_id = _counts(args, last_id)
    topic = topic_for_change(session, args[1])
    if topic is None:
        raise CommandError(_NO_SUCH_KEY)
    if topic.length or topic.has_segments:
        if last_id < topic.lowest_last_id:
            raise CommandError(_BELOW_TOP)
        if entries_added is not None and topic.length > entries_added:
            raise CommandError(_FEWER_THAN_THERE)
    topic.set_last_id(last_id)
    known_deleted_id = None if max_deleted_id == entry_ids.MIN else max_deleted_id
    topic.restate(entries_added=entries_added, max_deleted_id=known_deleted_id)
    session.engine.notifications.tell("t", b"xsetid", session.db, args[1])
    return OK


def _counts(args: list[bytes], last_id: Id) -> tuple[int | None, Id]:
    """ENTRIESADDED and MAXDELETEDID. Raises CommandError."""
    entries_added: int | None = None
    max_deleted_id = entry_ids.MIN
    for place in range(3, len(args), 2):
        option = args[place].upper()
        if place + 1 == len(args):
            raise CommandError(SYNTAX)
        if option == b"ENTRIESADDED":
            entries_added = integer(args[place + 1])
            if entries_added < 0:
                raise CommandError(_NEGATIVE_ADDED)
        elif option == b"MAXDELETEDID":
            max_deleted_id = strict_id(args[place + 1])
            if last_id < max_deleted_id:
                raise CommandError(_BELOW_DELETED)
        else:
            raise CommandError(SYNTAX)
    return entries_added, max_deleted_id
