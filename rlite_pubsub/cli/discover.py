"""`rlite-pubsub discover`: the servers of this machine, or those in a directory."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime

from rlite_pubsub import discovery
from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.secrets import without_password
from rlite_pubsub.cli.text import escaped
from rlite_pubsub.discovery import ServerCard

_COLUMNS = {"addresses": "40", "host": "16", "pid": ">8", "version": "9", "started": "19", "topics": ">7", "store": ""}
"""Head and format."""


def discover(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.add_argument("--directory", metavar="URL", help="ask the Redis where servers register, not this machine")
    parser.add_argument("--topic", help="with --directory: only servers that have this topic")
    parser.add_argument("--json", action="store_true", help="print JSON, with the names of topics")
    parser.set_defaults(run=_discover)


def _discover(arguments: argparse.Namespace) -> int:
    if arguments.topic is not None and arguments.directory is None:
        raise CommandFailed("--topic needs --directory URL: servers register their topics there")
    found = discovery.on_this_machine() if arguments.directory is None else _registered(arguments)
    if arguments.json:
        print(json.dumps([asdict(card) for card in found], indent=2))
        return 0
    if not found:
        print("No server was found.")
        return 0
    row = "  ".join(f"{{:{form}}}" for form in _COLUMNS.values()).format
    print(row(*_COLUMNS).rstrip())
    for card in found:
        words = _told(card, has_topics=arguments.directory is not None)
        print(row(*(escaped(word.encode(errors="surrogateescape")) for word in words)).rstrip())
    return 0


def _registered(arguments: argparse.Namespace) -> list[ServerCard]:
    try:
        return discovery.in_directory(arguments.directory, arguments.topic)
    except ValueError as failure:
        raise CommandFailed(f"{without_password(arguments.directory)}: {failure}") from failure


def _told(card: ServerCard, *, has_topics: bool) -> tuple[str, ...]:
    return (
        " ".join(map(without_password, card.addresses)) or "-",
        card.host,
        str(card.pid),
        card.version,
        _when(card.started_ms),
        str(len(card.topics) + card.topics_left_out) if has_topics else "-",
        card.store,
    )


def _when(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "-"  # of somebody else's
