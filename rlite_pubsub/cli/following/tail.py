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
import os
import time
from dataclasses import dataclass
from typing import Any

from rlite_pubsub import measures
from rlite_pubsub.cli.ending import say
from rlite_pubsub.cli.following.output import Output, add_output
from rlite_pubsub.cli.target import add_target, client_of
from rlite_pubsub.cli.text import escaped, for_json, mapping, raw, text
from rlite_pubsub.topics.entry import BEGINNING, Entry

# -- what is shown: entries of topics, messages of channels


@dataclass(frozen=True, slots=True)
class EntryItem:
    """`ID field=value field=value`"""

    entry: Entry

    def line(self) -> str:
        return " ".join([self.entry.id, *[f"{escaped(field)}={escaped(value)}" for field, value in self.entry.pairs]])

    def raw(self) -> bytes:
        return b"\n".join([value for _, value in self.entry.pairs])

    def about(self) -> dict[str, object]:
        entry = self.entry
        return {
            "topic": text(entry.topic),
            "id": entry.id,
            "time": entry.time.isoformat(timespec="milliseconds"),
            "fields": {text(field): for_json(value) for field, value in entry.pairs},
        }


@dataclass(frozen=True, slots=True)
class Message:
    """The payload, of a pattern's messages behind the channel."""

    channel: bytes
    pattern: bytes | None
    data: bytes

    def line(self) -> str:
        return escaped(self.data) if self.pattern is None else f"{escaped(self.channel)} {escaped(self.data)}"

    def raw(self) -> bytes:
        return self.data

    def about(self) -> dict[str, object]:
        pattern = {} if self.pattern is None else {"pattern": text(self.pattern)}
        return {"channel": text(self.channel), **pattern, "data": for_json(self.data)}


# -- where a topic is followed from, as it is said on a command line
#
#    START                       all there is
#    END                         what comes
#    1700000000000-3             behind this entry
#    1700000000000               since this many ms after 1970
#    2026-11-18, 2026-11-18T10:00, 2026-11-18T10:00:00Z      since a time; without a zone it is this machine's
#    10m 90s 2h 7d 500ms         since so long ago

END = measures.END


def start_of(word: str) -> str:
    """Return a start in the words of `topics.subscribe`. Raises ArgumentTypeError."""
    start = measures.start_of(word, int(time.time() * 1000), None)
    if start is None:
        raise argparse.ArgumentTypeError(f"{word!r} is not START, END, an id, time (2026-11-18T10:00) or age (10m)")
    return start


# -- A channel, or all that match a pattern, followed live: what is published while the connection is gone is not seen,
# and that is said.

FIRST_DELAY_S, LAST_DELAY_S = 0.05, 1.0


def follow_channel(client: Any, name: bytes, output: Output, look_s: float, *, is_pattern: bool) -> None:
    """Follow until enough is shown. A server that is away at first is an error; later it is waited for."""
    from redis.exceptions import ConnectionError, TimeoutError

    following = _Channel(client, name, output, look_s, is_pattern)
    delay_s = 0.0
    while True:
        try:
            following.listen()
            return
        except (ConnectionError, TimeoutError) as failure:
            if not following.has_begun:
                raise
            if following.is_subscribed:
                following.lose(failure)
                delay_s = 0.0
            delay_s = min(max(2 * delay_s, FIRST_DELAY_S), LAST_DELAY_S)
            time.sleep(delay_s)


class _Channel:
    """One after the other: the subscriptions of one `tail`."""

    def __init__(self, client: Any, name: bytes, output: Output, look_s: float, is_pattern: bool) -> None:
        self._client = client
        self._name = name
        self._output = output
        self._look_s = look_s
        self._is_pattern = is_pattern
        self.has_begun = False
        self.is_subscribed = False

    def listen(self) -> None:
        """Listen until enough is shown, or the connection is lost."""
        with self._client.pubsub() as pubsub:
            (pubsub.psubscribe if self._is_pattern else pubsub.subscribe)(self._name)
            while True:
                message = pubsub.get_message(timeout=self._look_s)
                if message is None:
                    self._output.check()
                elif not self._take(message):
                    return

    def lose(self, failure: Exception) -> None:
        """The connection is gone; what is missed until it is back is said once."""
        say(f"the connection is lost ({failure}): what is published until it is back is not shown")
        self.is_subscribed = False

    def _take(self, message: dict[str, Any]) -> bool:
        match message["type"]:
            case "message" | "pmessage":
                pattern = None if message["pattern"] is None else raw(message["pattern"])
                return self._output.put(Message(raw(message["channel"]), pattern, raw(message["data"])))
            case "subscribe" | "psubscribe":
                if self.has_begun and not self.is_subscribed:
                    say("the connection is back")
                self.has_begun = self.is_subscribed = True
            case "gap":
                say(f"gap: {message['data']} messages of {escaped(raw(message['channel']))} are lost")
        return True


LOOK_S = 1.0
"""So long it may take to notice that nobody reads the output any more."""


def tail(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.description = "Show a topic from some point on, or what is published to a channel, until interrupted."
    parser.add_argument(
        "name", type=os.fsencode, metavar="TOPIC|CHANNEL", help="a topic, or else a channel, of this name"
    )
    add_target(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--from",
        dest="start",
        type=start_of,
        metavar="PLACE",
        help="of a topic: START, END (the default), the ID after which to begin, a time (2026-11-18T10:00), "
        "or an age (10m, 2h, 7d)",
    )
    kind.add_argument(
        "--group", type=os.fsencode, help="of a topic: what this group has not read yet; the group keeps it"
    )
    kind.add_argument("--channel", action="store_true", help="the channel, even if there is a topic of that name")
    kind.add_argument("--pattern", action="store_true", help="all channels whose name matches")
    add_output(parser)
    parser.set_defaults(run=_tail)


def _tail(arguments: argparse.Namespace) -> int:
    name: bytes = arguments.name
    output = Output(arguments)
    with client_of(arguments.store, tries_again=False) as client:
        is_topic = arguments.start is not None or arguments.group is not None
        if not (arguments.pattern or arguments.channel):
            is_there = client.type(name) in (b"stream", "stream")
            if not (is_there or arguments.group is not None):
                what = "its first entry" if is_topic else "what is published to the channel of that name"
                say(f"there is no topic {escaped(name)}: waiting for {what}")
                arguments.start = BEGINNING if arguments.start == END else arguments.start  # all that comes is new
            is_topic = is_topic or is_there
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


def _follow_topic(client: Any, name: bytes, start: str, output: Output) -> None:
    from rlite_pubsub import topics
    from rlite_pubsub.topics import pushed_line

    def tell(gap: topics.Gap) -> None:
        say(f"gap: {gap.lost} entries of {text(gap.topic)} are gone; it goes on from {gap.earliest}")

    notice = _LostConnection()
    pushed_line.log.addFilter(notice)
    pushed_line.log.setLevel(logging.INFO)
    with topics.subscribe(client, name, since=start, on_gap=tell) as subscription:
        while True:
            entry = subscription.get(LOOK_S)
            if entry is None:
                output.check()
                continue
            notice.forget()
            if not output.put(EntryItem(entry)):
                return


class _LostConnection(logging.Filter):
    """Shows only the first line that a subscription logs while it has no connection."""

    def __init__(self) -> None:
        super().__init__()
        self._is_told = False

    def forget(self) -> None:
        """Note that there is a connection again: its loss will be reported."""
        self._is_told = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not self._is_told:
            self._is_told = True
            say(f"{record.getMessage()} (and so on, until it is there)")
        return False
