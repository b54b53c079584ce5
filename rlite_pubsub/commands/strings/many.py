"""Several strings at once: MGET, MSET, MSETNX."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.protocol.errors import wrong_arity
from rlite_pubsub.protocol.replies import OK, Reply


@command(
    "mget",
    arity=-2,
    flags="readonly fast",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Get the values of all the given keys",
    complexity="O(N) where N is the number of keys to retrieve.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", -1, 1, 0)),),
    tips=("request_policy:multi_shard",),
)
def mget(session: CommandSession, args: list[bytes]) -> Reply:
    records = [find(session, key) for key in args[1:]]
    return [record.value if isinstance(record, Text) else None for record in records]


@command(
    "mset",
    arity=-3,
    flags="write denyoom",
    group="string",
    since="1.0.1",
    categories="string",
    summary="Set multiple keys to multiple values",
    complexity="O(N) where N is the number of keys to set.",
    arguments=(Arg("key_value", "block", multiple=True, arguments=(Arg("key", "key", key_spec=0), Arg("value"))),),
    key_specs=(KeySpec(("OW", "UPDATE"), ("index", 1), ("range", -1, 2, 0)),),
    tips=("request_policy:multi_shard", "response_policy:all_succeeded"),
)
def mset(session: CommandSession, args: list[bytes]) -> Reply:
    _check_pairs(args)
    _put_all(session, args)
    return OK


@command(
    "msetnx",
    arity=-3,
    flags="write denyoom",
    group="string",
    since="1.0.1",
    categories="string",
    summary="Set multiple keys to multiple values, only if none of the keys exist",
    complexity="O(N) where N is the number of keys to set.",
    arguments=(Arg("key_value", "block", multiple=True, arguments=(Arg("key", "key", key_spec=0), Arg("value"))),),
    key_specs=(KeySpec(("OW", "INSERT"), ("index", 1), ("range", -1, 2, 0)),),
    tips=("request_policy:multi_shard", "response_policy:agg_min"),
)
def msetnx(session: CommandSession, args: list[bytes]) -> Reply:
    _check_pairs(args)
    if any(for_change(session, key) is not None for key in args[1::2]):
        return 0
    _put_all(session, args)
    return 1


def _check_pairs(args: list[bytes]) -> None:
    if len(args) % 2 == 0:
        raise wrong_arity(args[0].lower())


def _put_all(session: CommandSession, args: list[bytes]) -> None:
    keyspace, notifications, database = keyspace_of(session), session.engine.notifications, session.db
    for key, value in zip(args[1::2], args[2::2], strict=True):
        keyspace.put_string(database, key, value)
        notifications.tell("$", b"set", database, key)
