"""`rlite-pubsub shard`: several servers as one sharded store, each with a part of the keys."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.cli.target import PASSWORD

if TYPE_CHECKING:
    import redis

    from rlite_pubsub.engine.shards.directory import Member, ShardDirectory
    from rlite_pubsub.shards.spreading import QueuePlaces
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
    what = (
        "Close what queues have so far as segments, and spread all closed segments of each over the members. Pushes "
        "and pops continue meanwhile."
    )
    spreading = actions.add_parser("spread", help="spread segments of queues over the members", description=what)
    spreading.add_argument("at", metavar="HOST:PORT", help="any member")
    spreading.add_argument("queues", nargs="+", metavar="QUEUE", help="a queue")
    spreading.add_argument("--to", metavar="HOST:PORT", help="the member that gets the pushes from now on")
    _add_wait(spreading)
    spreading.set_defaults(run=_spread)
    what = "Show which member has which segments of queues, and where their subscribers are."
    queues = actions.add_parser("queues", help="show the segments and subscribers of queues", description=what)
    queues.add_argument("at", metavar="HOST:PORT", help="any member")
    queues.add_argument("queues", nargs="*", metavar="QUEUE", help="a queue (all of them, if none is named)")
    queues.set_defaults(run=_queues)
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

    slots = [*arguments.slot, *(slot_of(os.fsencode(key)) for key in arguments.keys)]
    if not slots or not all(0 <= slot < _SLOTS for slot in slots):
        raise CommandFailed("name keys, or slots from 0 to 16383 (--slot)")
    at, to = _address(arguments.at), _address(arguments.to)
    with _whole() as whole, _explained():
        directory = whole.directory(at)
        whole.move(directory, dict.fromkeys(slots), _member(directory, to))
        return _finish(whole, at, no_wait=arguments.no_wait)


def _member(directory: ShardDirectory, address: MemberAddress) -> Member:
    from rlite_pubsub.shards.whole import address_of

    for member in directory.members:
        if address_of(member) == address:
            return member
    raise CommandFailed(f"{address} is not a member: `shard list` shows them, `shard add` adds one")


def _spread(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.engine.shards.slots import slot_of
    from rlite_pubsub.shards.spreading import cut, spread

    at, names = _address(arguments.at), [os.fsencode(name) for name in arguments.queues]
    with _whole() as whole, _explained():
        directory = whole.directory(at)
        to = None if arguments.to is None else _member(directory, _address(arguments.to))
        for name in names:
            if why := cut(whole, directory, name):
                say(f"{_shown(name)}: {why}")
        count = sum(spread(whole, directory, name) for name in names)
        print(f"{count} segments to be moved")
        if to is not None:
            whole.move(directory, dict.fromkeys(map(slot_of, names)), to)
        return _finish(whole, at, no_wait=arguments.no_wait)


def _queues(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.shards.spreading import places_of, queues_of

    with _whole() as whole, _explained():
        directory = whole.directory(_address(arguments.at))
        names = [os.fsencode(name) for name in arguments.queues] or queues_of(whole, directory)
        for name in names:
            _print_queue(places_of(whole, directory, name))
    return 0


def _print_queue(places: QueuePlaces) -> None:
    print(f"queue {_shown(places.name)}: {sum(part.entries for part in places.parts)} values")
    print(f"  {'segment':32}{'member':24}{'values':>10}{'bytes':>14}{'blocks':>8}  ids")
    for part in places.parts:
        blocks = "-" if part.blocks is None else str(part.blocks)
        ids = f"{part.first} to {part.last}" if part.first else f"grows, last {part.last}"
        where = part.member.address.decode()
        print(f"  {_shown(part.name):32}{where:24}{part.entries:10}{part.size_bytes:14}{blocks:>8}  {ids}")
    if places.subscribers:
        print(f"  {'subscriber':32}{'behind':>10}  {'position':24}next in")
    for subscriber in places.subscribers:
        behind = "-" if subscriber.behind is None else str(subscriber.behind)
        print(f"  {subscriber.name:32}{behind:>10}  {subscriber.position:24}{_shown(subscriber.segment)}")


def _shown(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


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

    from rlite_pubsub.embedded.bounded_parsers import BoundedParser

    where: dict[str, Any] = {"host": address.host, "port": address.port, "password": os.environ.get(PASSWORD)}
    return redis.Redis(connection_pool=redis.ConnectionPool(**where, parser_class=BoundedParser))


def _address(word: str) -> MemberAddress:
    from rlite_pubsub.shards.whole import MemberAddress

    host, colon, port = word.rpartition(":")
    if not colon:
        host, port = word, str(_PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise CommandFailed(f"{word!r} is not HOST:PORT")
    return MemberAddress(host.strip("[]"), int(port))
