"""`rlite-pubsub tail`: a topic from some point on, or a channel as it is published to, until interrupted.

Promises:
 - Of a topic each entry is shown once and in order, whatever becomes of the connection or of the server meanwhile.
 - Law 8: what retention took before it could be shown, and when a channel could not be heard, is said on standard
   error.
 - Looking changes nothing: no group's place, and no store is made.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

from rlite_pubsub.cli_ending import run, say
from rlite_pubsub.cli_output import Output, add_output
from rlite_pubsub.cli_start import END, start_of
from rlite_pubsub.cli_tail_channel import follow_channel
from rlite_pubsub.cli_tail_items import EntryItem
from rlite_pubsub.cli_target import add_target, client_of, folder_of, is_server, must_exist
from rlite_pubsub.cli_text import mapping, text

LOOK_S = 1.0
"""So long it may take to notice that nobody reads the output any more."""


def main(words: list[str]) -> int:
    """Follow until interrupted."""
    return run(_parser(), words[1:])


def _parser() -> argparse.ArgumentParser:
    summary = "Show a topic from some point on, or what is published to a channel, until interrupted."
    parser = argparse.ArgumentParser(prog="rlite-pubsub tail", description=summary)
    parser.add_argument("name", metavar="TOPIC|CHANNEL", help="a channel, where there is no topic of that name")
    add_target(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--from",
        dest="start",
        type=start_of,
        metavar="PLACE",
        help="of a topic: START, END (the default), the ID behind which to begin, a time (2026-11-18T10:00), "
        "or an age (10m, 2h, 7d)",
    )
    kind.add_argument("--group", help="of a topic: what this group has not been given yet; it is given nothing by it")
    kind.add_argument("--channel", action="store_true", help="the channel, even if there is a topic of that name")
    kind.add_argument("--pattern", action="store_true", help="all channels whose name matches")
    add_output(parser)
    parser.set_defaults(run=_tail)
    return parser


def _tail(arguments: argparse.Namespace) -> int:
    target: str = arguments.store
    name: str = arguments.name
    if not is_server(target):
        must_exist(folder_of(target))
    output = Output(arguments)
    with client_of(target, tries_again=False) as client:
        is_topic = arguments.start is not None or arguments.group is not None
        if not (arguments.pattern or arguments.channel or is_topic):
            is_topic = client.type(name) in (b"stream", "stream")
            if not is_topic:
                say(f"there is no topic {name}: showing what is published to the channel")
        if is_topic:
            _follow_topic(client, name, _start(client, arguments), output)
        else:
            follow_channel(client, name, output, LOOK_S, is_pattern=arguments.pattern)
    return 0


def _start(client: Any, arguments: argparse.Namespace) -> str:
    if arguments.group is None:
        return arguments.start or END
    about = mapping(client.execute_command("TOPIC.GROUP", arguments.name, arguments.group))
    return text(about["last-delivered-id"])


def _follow_topic(client: Any, name: str, start: str, output: Output) -> None:
    from rlite_pubsub import topics

    def tell(gap: topics.Gap) -> None:
        say(f"gap: {gap.lost} entries of {gap.topic} are gone; it goes on from {gap.earliest}")

    notice = _LostConnection()
    logging.getLogger("rlite_pubsub").addFilter(notice)
    logging.getLogger("rlite_pubsub").setLevel(logging.INFO)
    with topics.subscribe(client, name, since=start, on_gap=tell) as subscription:
        while True:
            entry = subscription.get(LOOK_S)
            if entry is None:
                output.check()
                continue
            notice.is_told = False
            if not output.put(EntryItem(entry)):
                return


class _LostConnection(logging.Filter):
    """Of what a subscription logs while it has no connection, only the first line is told."""

    def __init__(self) -> None:
        super().__init__()
        self.is_told = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.module != "subscription":
            return True
        if not self.is_told:
            self.is_told = True
            say(f"{record.getMessage()} (and so on, until it is there)")
        return False
