"""What each worker of a soak did, and whether it adds up.

Every incarnation of a worker appends to a file of its own, one line for each thing, in one write: a kill loses at most
what it was about to say. Times are of CLOCK_MONOTONIC, which all processes of a machine share.

    published      number, channel, when it was sent, when acknowledged
    subscribed     name, when it was confirmed
    received       name (that of the channel or the pattern), channel, publisher, number
    unsubscribing  name, when it was about to
    unsubscribed   name: the confirmation came, behind all that the name has brought
    silent         publishes no more
    gap            channel, how many of its messages are lost (a full disk, where the worker expects it)
    ended          heard the last message of all: it lived to the end

The promise: a subscriber hears through each of its names, of each publisher, none twice, none out of order, and
every message that was sent after the name was confirmed and acknowledged before it was given up, up to the last that
it lived to hear.
All lives of a durable subscriber together, the last of which has lived to the end, have heard every message that was
sent after the first of them was confirmed the name, but for as many of a channel as they were told to be lost. What one
has heard another may hear again.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import NamedTuple

END_CHANNEL = "end"
MESSAGES_TOLD = 5


class Published(NamedTuple):
    """One acknowledged message."""

    number: int
    channel: str
    sent_ns: int
    acknowledged_ns: int = 0


@dataclass
class Page:
    """One incarnation's account of itself."""

    path: Path
    published: list[Published] = field(default_factory=list)
    subscribed: dict[str, int] = field(default_factory=dict)
    received: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    """(name, publisher) -> (number, channel) of each message, as they came."""
    unsubscribing: dict[str, int] = field(default_factory=dict)
    unsubscribed: set[str] = field(default_factory=set)
    gaps: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """channel -> how many of its messages are lost, by each name that hears it."""
    silent: bool = False
    ended: bool = False

    @property
    def name(self) -> str:
        return self.path.stem


class Pen:
    """Writes a page. Safe to share between threads: each line is one write."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def published(self, batch: Iterable[Published]) -> None:
        now_ns = time.monotonic_ns()
        self._write(*(["published", one.number, one.channel, one.sent_ns, now_ns] for one in batch))

    def subscribed(self, name: str) -> None:
        self._write(["subscribed", name, time.monotonic_ns()])

    def unsubscribing(self, name: str) -> None:
        self._write(["unsubscribing", name, time.monotonic_ns()])

    def unsubscribed(self, name: str) -> None:
        self._write(["unsubscribed", name])

    def received(self, name: str, channel: str, publisher: str, number: int) -> None:
        self._write(["received", name, channel, publisher, number])

    def gap(self, channel: str, messages: int) -> None:
        self._write(["gap", channel, messages])

    def silent(self) -> None:
        self._write(["silent"])

    def ended(self) -> None:
        self._write(["ended"])

    def _write(self, *lines: list[object]) -> None:
        os.write(self._descriptor, "".join(json.dumps(line) + "\n" for line in lines).encode())


def read(path: Path) -> Page:
    """A page. A last line that was cut off by a kill does not count."""
    page = Page(path)
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            _enter(page, *json.loads(line))
    return page


def _enter(page: Page, what: str, *rest: object) -> None:
    match what, rest:
        case "published", (int(number), str(channel), int(sent_ns), int(acknowledged_ns)):
            page.published.append(Published(number, channel, sent_ns, acknowledged_ns))
        case "subscribed", (str(name), int(when_ns)):
            page.subscribed[name] = when_ns
        case "unsubscribing", (str(name), int(when_ns)):
            page.unsubscribing[name] = when_ns
        case "unsubscribed", (str(name),):
            page.unsubscribed.add(name)
        case "received", (str(name), str(channel), str(publisher), int(number)):
            page.received[name, publisher].append((number, channel))
        case "gap", (str(channel), int(messages)):
            page.gaps[channel] += messages
        case "silent", ():
            page.silent = True
        case "ended", ():
            page.ended = True
        case _:
            raise AssertionError(f"{page.path} says {what} {rest}")


def faults(pages: list[Page]) -> list[str]:
    """Everything that does not add up."""
    return [
        fault
        for reader in pages
        for name, since_ns in reader.subscribed.items()
        for publisher in pages
        for fault in _faults(reader, name, since_ns, publisher)
    ]


def durable_faults(lives: list[Page], pages: list[Page]) -> list[str]:
    """What no life of one durable subscriber has heard, and should have."""
    if not any(life.ended for life in lives):
        return [f"no life of {lives[0].name} has heard the end"]
    missing: list[tuple[str, str, Published]] = []
    for name in {name for life in lives for name in life.subscribed}:
        since_ns = min(life.subscribed[name] for life in lives if name in life.subscribed)
        for publisher in pages:
            heard = {number for life in lives for number, _ in life.received.get((name, publisher.name), ())}
            missing += [
                (name, publisher.name, one)
                for one in publisher.published
                if since_ns < one.sent_ns and fnmatchcase(one.channel, name) and one.number not in heard
            ]
    told = {channel: sum(life.gaps[channel] for life in lives) for life in lives for channel in list(life.gaps)}
    lost = Counter(one.channel for _, _, one in missing)
    untold: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, publisher_name, one in missing:
        if lost[one.channel] > told.get(one.channel, 0):
            untold[name, publisher_name].append(one.number)
    return [
        f"the {len(lives)} lives of {lives[0].name} heard of {publisher_name} by {name}: "
        f"not {numbers[:MESSAGES_TOLD]} ({len(numbers)} messages)"
        for (name, publisher_name), numbers in untold.items()
    ]


def _faults(reader: Page, name: str, since_ns: int, publisher: Page) -> Iterable[str]:
    where = f"{reader.name} heard of {publisher.name} by {name}"
    heard = reader.received.get((name, publisher.name), [])
    numbers = [number for number, _ in heard]
    wrong = [(one, next_one) for one, next_one in zip(numbers, numbers[1:], strict=False) if next_one <= one]
    if wrong:
        yield f"{where}: {wrong[:MESSAGES_TOLD]} twice or out of order ({len(wrong)} times)"
    strays = [one for one in heard if not fnmatchcase(one[1], name)]
    if strays:
        yield f"{where}: {strays[:MESSAGES_TOLD]}, which it did not subscribe to"
    until_ns = reader.unsubscribing.get(name, inf)
    heard_all = reader.ended or name in reader.unsubscribed
    last = max(numbers, default=0)
    missing = {
        one.number: one.channel
        for one in publisher.published
        if since_ns < one.sent_ns
        and one.acknowledged_ns < until_ns
        and fnmatchcase(one.channel, name)
        and (heard_all or one.number < last)
        and one.channel not in reader.gaps  # `durable_faults` counts them
    }
    for number in numbers:
        missing.pop(number, None)
    if missing:
        yield f"{where}: not {list(missing.items())[:MESSAGES_TOLD]} ({len(missing)} messages)"
