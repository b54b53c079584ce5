"""`rlite-pubsub shard`: several servers as one sharded whole, each with a part of the keys."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.target import PASSWORD

if TYPE_CHECKING:
    import redis

    from rlite_pubsub.engine.shards.directory import ShardDirectory
    from rlite_pubsub.shards.whole import MemberAddress, ShardedWhole

_PORT = 6379


def shard(parser: argparse.ArgumentParser) -> None:
    """Declare its subcommands."""
    parser.description = (
        "Spread keys and queues over several servers, each with a store of its own. Clients of a Redis Cluster, and "
        f"rlite_pubsub.Queue, find each key by themselves. The servers' password may come from {PASSWORD}."
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make servers one whole", description="Make servers one whole.")
    create.add_argument("members", nargs="+", metavar="HOST:PORT", help="as clients reach them")
    create.set_defaults(run=_create)
    add = actions.add_parser("add", help="add members, or say where members are now")
    add.add_argument("at", metavar="HOST:PORT", help="any member")
    add.add_argument("members", nargs="+", metavar="HOST:PORT", help="those to be added")
    add.set_defaults(run=_add)
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
        raise CommandFailed(f"{word!r} is no HOST:PORT")
    return MemberAddress(host.strip("[]"), int(port))
