"""XGROUP: groups of topics and their consumers are made, moved and removed.

The order of the checks is Redis's: options, the key's type, key and group, and only then how many arguments there are.
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.group_lookup import create_consumer, no_group_of_key
from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.arguments.stream_ids import bound_id, strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command, container
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead
from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups.group import Group
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError, subcommand_syntax
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.topics import entry_ids

_NO_KEY = (
    b"ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM "
    b"option to create an empty stream automatically."
)
_BUSY = b"BUSYGROUP Consumer Group name already exists"
_BAD_ENTRIES_READ = b"ERR value for ENTRIESREAD must be positive or -1"

_KEY = Arg("key", "key", key_spec=0)
_GROUP = Arg("groupname")
_CONSUMER = Arg("consumername")
_ID = Arg("id", "oneof", arguments=(Arg("ID"), Arg("new_id", "pure-token", token="$")))
_INSERTS = (KeySpec(("RW", "INSERT"), ("index", 2), ("range", 0, 1, 0)),)
_UPDATES = (KeySpec(("RW", "UPDATE"), ("index", 2), ("range", 0, 1, 0)),)
_DELETES = (KeySpec(("RW", "DELETE"), ("index", 2), ("range", 0, 1, 0)),)

container(
    "xgroup",
    arity=-2,
    group="stream",
    since="5.0.0",
    summary="A container for consumer groups commands",
    complexity="Depends on subcommand.",
)


@command(
    "xgroup|create",
    arity=-5,
    flags="write denyoom",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Create a consumer group.",
    complexity="O(1)",
    arguments=(
        _KEY,
        _GROUP,
        _ID,
        Arg("mkstream", "pure-token", token="MKSTREAM", optional=True),
        Arg("entries_read", "integer", token="ENTRIESREAD", optional=True),
    ),
    key_specs=_INSERTS,
    history=(("7.0.0", "Added the `entries_read` named argument."),),
)
def xgroup_create(session: CommandSession, args: list[bytes]) -> Reply:
    may_create, entries_read = _options(args, creates=True)
    key, name = args[2], args[3]
    topic = topic_for_change(session, key)
    if topic is None and not may_create:
        raise CommandError(_NO_KEY)
    if len(args) > 8:
        raise subcommand_syntax(args)
    if args[4] == b"$":
        last_id = entry_ids.MIN if topic is None else topic.last_id
    else:
        last_id = strict_id(args[4])
    if topic is None:
        topic = keyspace_of(session).create_topic(session.db, key)
    elif groups.group_of(topic, name) is not None:
        raise CommandError(_BUSY)
    groups.create(topic, name, last_id, entries_read)
    session.engine.notifications.tell("t", b"xgroup-create", session.db, key)
    return OK


@command(
    "xgroup|setid",
    arity=-5,
    flags="write",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Set a consumer group to an arbitrary last delivered ID value.",
    complexity="O(1)",
    arguments=(_KEY, _GROUP, _ID, Arg("entries_read", "integer", token="ENTRIESREAD", optional=True)),
    key_specs=_UPDATES,
    history=(("7.0.0", "Added the optional `entries_read` argument."),),
)
def xgroup_setid(session: CommandSession, args: list[bytes]) -> Reply:
    _, entries_read = _options(args, creates=False)
    topic, group = _of(session, args)
    if len(args) not in (5, 7):
        raise subcommand_syntax(args)
    group.move(topic.last_id if args[4] == b"$" else bound_id(args[4]), entries_read)
    session.engine.notifications.tell("t", b"xgroup-setid", session.db, args[2])
    return OK


@reads_ahead(b"xgroup|create")
@reads_ahead(b"xgroup|setid")
def _read_ahead(session: CommandSession, args: list[bytes], places: Places) -> None:
    """Note that commands behind it in the queue read from there."""
    topic = find_topic(session, args[2])
    if topic is not None and topic.has_cold:
        places[session.db, args[2], args[3]] = topic.last_id if args[4] == b"$" else bound_id(args[4])


def _options(args: list[bytes], *, creates: bool) -> tuple[bool, int | None]:
    """(MKSTREAM, ENTRIESREAD)."""
    may_create, entries_read = False, -1
    place = 5
    while place < len(args):
        word = args[place].upper()
        if creates and word == b"MKSTREAM":
            may_create = True
        elif word == b"ENTRIESREAD" and place + 1 < len(args):
            place += 1
            entries_read = integer(args[place])
            if entries_read < -1:
                raise CommandError(_BAD_ENTRIES_READ)
        else:
            raise subcommand_syntax(args)
        place += 1
    return may_create, None if entries_read == -1 else entries_read


def _of(session: CommandSession, args: list[bytes]) -> tuple[Topic, Group]:
    """Both must be there."""
    topic = topic_for_change(session, args[2])
    if topic is None:
        raise CommandError(_NO_KEY)
    group = groups.group_of(topic, args[3])
    if group is None:
        raise no_group_of_key(args[2], args[3])
    return topic, group


@command(
    "xgroup|destroy",
    arity=4,
    flags="write",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Destroy a consumer group.",
    complexity="O(N) where N is the number of entries in the group's pending entries list (PEL).",
    arguments=(_KEY, _GROUP),
    key_specs=_DELETES,
)
def xgroup_destroy(session: CommandSession, args: list[bytes]) -> Reply:
    """Clients blocked on the group learn that it is gone."""
    topic = topic_for_change(session, args[2])
    if topic is None:
        raise CommandError(_NO_KEY)
    group = groups.group_of(topic, args[3])
    if group is None:
        return 0
    groups.destroy(group)
    session.engine.notifications.tell("t", b"xgroup-destroy", session.db, args[2])
    return 1


@command(
    "xgroup|createconsumer",
    arity=5,
    flags="write denyoom",
    group="stream",
    since="6.2.0",
    categories="stream",
    summary="Create a consumer in a consumer group.",
    complexity="O(1)",
    arguments=(_KEY, _GROUP, _CONSUMER),
    key_specs=_INSERTS,
)
def xgroup_createconsumer(session: CommandSession, args: list[bytes]) -> Reply:
    _, group = _of(session, args)
    if group.consumer(args[4]) is not None:
        return 0
    create_consumer(session, group, args[4])
    return 1


@command(
    "xgroup|delconsumer",
    arity=5,
    flags="write",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Delete a consumer from a consumer group.",
    complexity="O(1)",
    arguments=(_KEY, _GROUP, _CONSUMER),
    key_specs=_DELETES,
)
def xgroup_delconsumer(session: CommandSession, args: list[bytes]) -> Reply:
    """Remove a consumer; answer how many entries were pending with it: they are pending no more."""
    _, group = _of(session, args)
    consumer = group.consumer(args[4])
    if consumer is None:
        return 0
    group.delete_consumer(consumer)
    session.engine.notifications.tell("t", b"xgroup-delconsumer", session.db, args[2])
    return consumer.pending_count


helps(
    "xgroup",
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
    group="stream",
    since="5.0.0",
    categories="stream",
)
