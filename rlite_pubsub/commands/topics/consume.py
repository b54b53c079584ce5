"""TOPIC.CONSUME, TOPIC.UNCONSUME: entries of a group pushed to a consumer, as many as it has credit for. An extension.

What is pushed is pending with the consumer, as if XREADGROUP had read it; engine/waits/consuming.py keeps who is next.
"""

from __future__ import annotations

from functools import partial

from rlite_pubsub.commands.groups.read import NEW, GroupRead, ahead, delivered, may_have_something, waited_for
from rlite_pubsub.engine.arguments.group_lookup import consumer_in_time, find_group, no_group
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.stream_arguments import Reading
from rlite_pubsub.engine.refusal import failed
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, Command, KeySpec, command
from rlite_pubsub.engine.waits.consuming import Intake
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss, ColdUnreadable
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.errors import StoreHeld

_SINCE = "1.0.0"
_BATCH = 32
"""Entries of one push: of a backlog, each consumer gets its share, and a slow socket is noticed in between."""


@command(
    "topic.consume",
    arity=6,
    flags="write pubsub noscript",
    group="stream",
    since=_SINCE,
    summary="Receive the entries of a group for a consumer, at most a given number unacknowledged at a time",
    complexity="O(1), and for each push O(N) where N is the number of its entries",
    arguments=(
        Arg("topic", "key", key_spec=0),
        Arg("group"),
        Arg("consumer"),
        Arg("credit", "integer", token="CREDIT"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_consume(session: CommandSession, args: list[bytes]) -> Reply:
    """Credit 0 pauses; another credit takes the place of the one before."""
    _, key, name, consumer, word, number = args
    if word.upper() != b"CREDIT":
        raise CommandError(SYNTAX)
    credit = integer(number, 0)
    if session.feed is not None:
        raise CommandError(b"ERR a durable subscriber's connection consumes no topics")
    group = find_group(session, key, name)
    if group is None:
        raise no_group(key, name)
    for joined in session.engine.readership.join(session, [group], consumer):
        consumer_in_time(session, joined, consumer)
    engine, called = session.engine, session.last_command
    assert called is not None
    seat = session.db, key, name, consumer
    engine.consuming.begin(session, engine.users.default, seat, credit, partial(_attempt, session, called))
    return OK


@command(
    "topic.unconsume",
    arity=-1,
    flags="pubsub noscript",
    group="stream",
    since=_SINCE,
    summary="Receive no more entries for a consumer, or for any",
    complexity="O(N) where N is the number of consumers that end",
    arguments=(
        Arg(
            "of",
            "block",
            optional=True,
            arguments=(Arg("topic", "key", key_spec=0), Arg("group"), Arg("consumer")),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_unconsume(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer for how many consumers it has ended. Pending entries stay pending."""
    if len(args) not in (1, 4):
        raise wrong_arity(b"topic.unconsume")
    seats = list(session.consumes or ()) if len(args) == 1 else [(session.db, args[1], args[2], args[3])]
    return sum([session.engine.consuming.end(session, seat) for seat in seats])


def _attempt(session: CommandSession, called: Command, intake: Intake) -> Reply:
    """Push what there is, as far as the credit goes. Raises StoreHeld."""
    engine = session.engine
    try:
        return _push(session, intake)
    except ColdMiss as miss:

        def fetched() -> None:
            unpin()
            engine.consuming.look_at(intake)
            engine.call_later(0.0, _nothing)

        unpin = miss.shelf.fetch(miss, fetched)
    except ColdUnreadable:
        engine.consuming.hold_off(intake)
    except CommandError:
        engine.consuming.lose(intake)
    except StoreHeld:
        raise
    except Exception as failure:
        failed(engine.keyspace, called, failure)
        engine.consuming.hold_off(intake)
    return None


def _push(session: CommandSession, intake: Intake) -> Reply:
    engine, keyspace = session.engine, session.engine.keyspace
    database, key, name, consumer = intake.seat
    group = waited_for(keyspace.find(database, key), name)
    credit = intake.left(group)
    wanted = Reading([key], [b">"], group=name, consumer=consumer)
    if credit > 0 and session.takes_more:
        if not may_have_something(GroupRead(key, group, NEW), wanted):
            return None
        if not keyspace.turn.writes:
            group = waited_for(keyspace.for_change(database, key), name)
            credit = intake.left(group)
    if credit <= 0 or not session.takes_more:
        engine.consuming.set_aside(intake)
        return None
    wanted = wanted._replace(count=min(credit, _BATCH))
    target = GroupRead(key, group, NEW)
    cold = keyspace.cold.shelf
    if group.topic.has_cold and cold is not None:
        with cold.waiting():
            ahead(target, wanted)
    entries = delivered(session, target, wanted)
    if entries is None:
        return None
    if credit > _BATCH:
        engine.call_later(0.0, _nothing)  # there may be more
    return intake.push(entries, engine.unacknowledged)


def _nothing() -> None:
    """Have a turn."""
