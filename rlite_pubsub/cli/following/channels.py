"""The commands that publish and that show what is published: publish, subscribe, psubscribe, channels."""

from __future__ import annotations

import argparse
import os
import sys

from rlite_pubsub.cli.target import add_target, client_of
from rlite_pubsub.cli.terminal import put
from rlite_pubsub.cli.text import raw


def publish(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    add_target(parser, may_create=True)
    parser.add_argument("channel", type=os.fsencode, metavar="CHANNEL")
    parser.add_argument(
        "message", type=os.fsencode, metavar="MESSAGE", help="- for standard input, one message a line"
    )
    parser.set_defaults(run=_publish)


def subscribe(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    _add_subscription(parser, "CHANNEL")
    parser.set_defaults(run=_subscribe, patterns=False)


def psubscribe(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    _add_subscription(parser, "PATTERN")
    parser.set_defaults(run=_subscribe, patterns=True)


def channels(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    add_target(parser)
    parser.add_argument("pattern", nargs="?", type=os.fsencode, default=b"*", metavar="PATTERN")
    parser.set_defaults(run=_channels)


def _add_subscription(parser: argparse.ArgumentParser, what: str) -> None:
    add_target(parser, may_create=True)
    parser.add_argument("names", nargs="+", type=os.fsencode, metavar=what)
    parser.add_argument("-n", "--count", type=int, default=0, help="stop after this many messages")


def _publish(arguments: argparse.Namespace) -> int:
    with client_of(arguments.store, creates=arguments.create) as client:
        if arguments.message != b"-":
            print(client.publish(arguments.channel, arguments.message))
            return 0
        for line in sys.stdin.buffer:
            print(client.publish(arguments.channel, line.removesuffix(b"\n")))
    return 0


def _subscribe(arguments: argparse.Namespace) -> int:
    left = arguments.count
    with (
        client_of(arguments.store, creates=arguments.create) as client,
        client.pubsub(ignore_subscribe_messages=True) as pubsub,
    ):
        (pubsub.psubscribe if arguments.patterns else pubsub.subscribe)(*arguments.names)
        for message in pubsub.listen():
            put(message["channel"], raw(message["data"]))
            left -= 1
            if left == 0:
                break
    return 0


def _channels(arguments: argparse.Namespace) -> int:
    with client_of(arguments.store) as client:
        names = sorted(client.pubsub_channels(arguments.pattern))
        for name, count in client.pubsub_numsub(*names) if names else []:
            put(name, b"%d" % count)
    return 0
