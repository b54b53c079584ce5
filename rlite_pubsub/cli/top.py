"""`rlite-pubsub top`: what goes on at a server, or in a store, as tables that are redrawn every few seconds.

Promises:
 - Looking changes nothing, and costs the server one look for each interval.
 - A name is shown escaped: a user who may name a topic cannot command the terminal of a user who watches it.
 - A server that goes away is waited for; the terminal is left as it was, however it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rlite_pubsub.cli.target import add_target, client_of, is_server
from rlite_pubsub.cli.top_screen import page_lines, screen
from rlite_pubsub.cli.top_tables import SORTS, TITLES, TopPage, TopReading, page, read

# -- The keys of `rlite-pubsub top`: what they choose, and how they are read.

HELP = "q quit   tab table   left/right sort   r reverse   / filter"
_KEYS = {"\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left", "\x7f": "rub", "\b": "rub"}
_PRESSED = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


@dataclass
class TopView:
    """What is shown, and in which order."""

    sort: str
    is_reversed: bool = False
    wanted: str = ""
    is_typing: bool = False
    is_over: bool = False
    table: str = ""
    """The only table that is shown; empty for all."""

    def press(self, key: str) -> None:
        """Change it; a key that means nothing changes nothing."""
        if self.is_typing:
            self._type(key)
        elif key in ("left", "right"):
            step = 1 if key == "right" else -1
            self.sort = SORTS[(SORTS.index(self.sort) + step) % len(SORTS)]
        elif key == "r":
            self.is_reversed = not self.is_reversed
        elif key == "\t":
            choices = ("", *TITLES)
            self.table = choices[(choices.index(self.table) + 1) % len(choices)]
        elif key == "/":
            self.is_typing, self.wanted = True, ""
        elif key == "q":
            self.is_over = True

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self.is_typing = False
        elif key == "\x1b":
            self.is_typing, self.wanted = False, ""
        elif key == "rub":
            self.wanted = self.wanted[:-1]
        elif len(key) == 1 and key.isprintable():
            self.wanted += key

    @property
    def foot(self) -> str:
        """The last line."""
        order = f"by {self.sort}{', reversed' if self.is_reversed else ''}"
        wanted = f"   only *{self.wanted}{'_' if self.is_typing else '*'}" if self.wanted or self.is_typing else ""
        return f"{HELP}   {order}{wanted}"


class Keyboard:
    """Standard input, key by key, where it is a terminal; a context that leaves it as it was."""

    def __init__(self) -> None:
        self._is_there = sys.stdin is not None and sys.stdin.isatty()

    def __enter__(self) -> Keyboard:
        if self._is_there:
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._is_there:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> list[str]:
        """Return the keys that are pressed; none if none is within this many seconds."""
        if not self._is_there:
            time.sleep(max(0.0, seconds))
            return []
        if not select.select([sys.stdin], [], [], max(0.0, seconds))[0]:
            return []
        pressed = os.read(sys.stdin.fileno(), 1024)
        if not pressed:  # the terminal is gone
            self._is_there = False
            return ["q"]
        return [_KEYS.get(each, each) for each in _PRESSED.findall(pressed.decode(errors="replace"))]


DEFAULT_INTERVAL_S = 2.0
DEFAULT_LIMIT = 1000


def top(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.epilog = "Keys: q, tab, left, right, r and /."
    add_target(parser)
    parser.add_argument(
        "-i", "--interval", type=_seconds, default=DEFAULT_INTERVAL_S, help="seconds between refreshes (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="print one page, with the rates of one interval, and exit")
    parser.add_argument("--json", action="store_true", help="one JSON object for each refresh")
    parser.add_argument("--sort", choices=SORTS, default=SORTS[0], help="the order of the tables (default: lag)")
    parser.add_argument("--match", default="*", metavar="PATTERN", help="only topics whose name matches")
    parser.add_argument(
        "--limit", type=int, default=DEFAULT_LIMIT, help=f"look at this many topics, by name (default: {DEFAULT_LIMIT})"
    )
    parser.set_defaults(run=_top, draws=True)


def _top(arguments: argparse.Namespace) -> int:
    target: str = arguments.store
    view = TopView(arguments.sort)
    with client_of(target, tries_again=False) as client:

        def look() -> TopReading:
            return read(client, arguments.match, arguments.limit, is_server=is_server(target))

        if arguments.once or arguments.json:
            _print(look, view, arguments)
        else:
            _watch(look, view, arguments.interval)
    return 0


def _print(look: Callable[[], TopReading], view: TopView, arguments: argparse.Namespace) -> None:
    before = look()
    while True:
        time.sleep(arguments.interval)
        now = look()
        found = page(before, now, view.sort)
        print(json.dumps(found.about()) if arguments.json else "\n".join(page_lines(found)), flush=True)
        if arguments.once:
            return
        before = now


def _watch(look: Callable[[], TopReading], view: TopView, interval_s: float) -> None:
    before, now = None, look()
    signal.signal(signal.SIGTERM, _leave)
    with Keyboard() as keyboard, screen() as drawn:
        trouble = ""
        while not view.is_over:
            shown = page(before, now, view.sort, is_reversed=view.is_reversed, wanted=view.wanted)
            drawn.draw(_only(shown, view.table), trouble + view.foot)
            next_look_s = (now.at_s if not trouble else time.monotonic()) + interval_s
            if not _press(keyboard, view, next_look_s):
                continue
            try:
                before, now, trouble = now, look(), ""
            except _lost() as failure:
                trouble = f"[{failure}]   "


def _only(shown: TopPage, title: str) -> TopPage:
    """Return the page with this table alone, if one is chosen."""
    return TopPage(shown.summary, [table for table in shown.tables if title in ("", table.title)])


def _press(keyboard: Keyboard, view: TopView, until_s: float) -> bool:
    """Handle the keyboard; return whether it is time for the next look: False if a key was pressed."""
    keys = keyboard.wait(max(0.0, until_s - time.monotonic()))  # looking may take longer than the interval
    for key in keys:
        view.press(key)
    return not keys


def _lost() -> tuple[type[Exception], ...]:
    from redis.exceptions import ConnectionError, TimeoutError

    return ConnectionError, TimeoutError


def _leave(number: int, frame: Any) -> None:
    """Leave through all contexts: they restore the terminal."""
    sys.exit(128 + number)


def _seconds(word: str) -> float:
    seconds = float(word)
    if not 0.1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError("0.1 or more")
    return seconds
