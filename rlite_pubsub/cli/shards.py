"""`rlite-pubsub shard`: several servers as one sharded store, each with a part of the keys."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.cli.target import PASSWORD

if TYPE_CHECKING:
    import redis

    from rlite_pubsub.engine.shards.directory import ShardDirectory
    from rlite_pubsub.shards.whole import MemberAddress, ShardedWhole

_PORT = 6379
_SLOTS = 16384
_LOOK_S = 0.1


def shard(parser: argparse.ArgumentParser) -> None:
    """Declare its subcommands."""
    parser.description = (
        "Spread keys and queues over several servers, each with a store of its own. Clients of a Redis Cluster, and "
        f"rlite_pubsub.Queue, find each key by themselves. The servers' password may come from {PASSWORD}."
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    create = actions.add_parser(
        "create",
        help="make one sharded store of several servers",
        description="Make one sharded store of several servers.",
    )
    create.add_argument("members", nargs="+", metavar="HOST:PORT", help="where clients reach them")
    create.set_defaults(run=_create)
    what = "Add empty members, or announce the new address of a member."
    add = actions.add_parser("add", help="add members, or announce a new address", description=what)
    add.add_argument("at", metavar="HOST:PORT", help="any member")
    add.add_argument("members", nargs="+", metavar="HOST:PORT", help="the members to add")
    add.set_defaults(run=_add)
    what = "Move queues and other keys, or slots, to a member."
    move = actions.add_parser("move", help="move queues and other keys, or slots, to a member", description=what)
    move.add_argument("at", metavar="HOST:PORT", help="any member")
    move.add_argument("to", metavar="TO", help="HOST:PORT of the member that gets them")
    move.add_argument("keys", nargs="*", metavar="KEY", help="a key; all keys of its slot move, too")
    move.add_argument("--slot", type=int, action="append", default=[], metavar="N", help="a slot, by its number")
    _add_wait(move)
    move.set_defaults(run=_move)
    what = "Give all members the same number of slots."
    rebalance = actions.add_parser("rebalance", help="give all members the same number of slots", description=what)
    rebalance.add_argument("at", metavar="HOST:PORT", help="any member")
    _add_wait(rebalance)
    rebalance.set_defaults(run=_rebalance)
    listing = actions.add_parser("list", help="list members, slots and keys", description="List the members.")
    listing.add_argument("at", metavar="HOST:PORT", help="any member")
    listing.set_defaults(run=_list)


def _create(arguments: argparse.Namespace) -> int:
    with _whole() as whole, _explained():
        _print(whole, whole.found([_address(word) for word in arguments.members]))
    return 0


def _add(arguments: argparse.Namespace) -> int:
    with _whole() as whole, _explained():
        _print(whole, whole.add(_address(arguments.at), [_address(word) for word in arguments.members]))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    with _whole() as whole, _explained():
        directory = whole.directory(_address(arguments.at))
        whole.spread(directory)
        _print(whole, directory)
    return 0


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-wait", action="store_true", help="begin, and leave the rest to the members")


def _move(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.engine.shards.slots import slot_of
    from rlite_pubsub.shards.whole import address_of

    slots = [*arguments.slot, *(slot_of(os.fsencode(key)) for key in arguments.keys)]
    if not slots or not all(0 <= slot < _SLOTS for slot in slots):
        raise CommandFailed("name keys, or slots from 0 to 16383 (--slot)")
    at, to = _address(arguments.at), _address(arguments.to)
    with _whole() as whole, _explained():
        directory = whole.directory(at)
        targets = [member for member in directory.members if address_of(member) == to]
        if not targets:
            raise CommandFailed(f"{to} is not a member: `shard list` shows them, `shard add` adds one")
        whole.move(directory, dict.fromkeys(slots), targets[0])
        return _finish(whole, at, no_wait=arguments.no_wait)


def _rebalance(arguments: argparse.Namespace) -> int:
    at = _address(arguments.at)
    with _whole() as whole, _explained():
        print(f"{whole.rebalance(whole.directory(at))} slots to be moved")
        return _finish(whole, at, no_wait=arguments.no_wait)


def _finish(whole: ShardedWhole, at: MemberAddress, *, no_wait: bool) -> int:
    """Wait until nothing is moving any more."""
    said = ""
    while not no_wait:
        seen = whole.look(whole.directory(at))
        failures = "; ".join(each.failure for each in seen if each.failure)
        if failures != said:
            said = failures
            if failures:
                say(f"{failures}; still trying (Ctrl-C leaves it to the members)")
        if not any(each.moving for each in seen):
            break
        time.sleep(_LOOK_S)
    directory = whole.directory(at)
    whole.spread(directory)
    _print(whole, directory)
    return 0


def _print(whole: ShardedWhole, directory: ShardDirectory) -> None:
    print(f"{'member':10}{'address':24}{'slots':>7}{'keys':>12}")
    for seen in whole.look(directory):
        slots = sum(last + 1 - first for first, last in directory.runs_of(seen.member))
        keys = "no answer" if seen.keys is None else str(seen.keys)
        print(f"{seen.member.id[:8].decode():10}{seen.member.address.decode():24}{slots:7}{keys:>12}")


@contextmanager
def _explained() -> Iterator[None]:
    from rlite_pubsub.shards.whole import WholeError

    try:
        yield
    except WholeError as failure:
        raise CommandFailed(str(failure)) from failure


def _whole() -> ShardedWhole:
    from rlite_pubsub.shards.whole import ShardedWhole

    return ShardedWhole(_connect)


def _connect(address: MemberAddress) -> redis.Redis:
    import redis

    return redis.Redis(address.host, address.port, password=os.environ.get(PASSWORD))


def _address(word: str) -> MemberAddress:
    from rlite_pubsub.shards.whole import MemberAddress

    host, colon, port = word.rpartition(":")
    if not colon:
        host, port = word, str(_PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise CommandFailed(f"{word!r} is not HOST:PORT")
    return MemberAddress(host.strip("[]"), int(port))
