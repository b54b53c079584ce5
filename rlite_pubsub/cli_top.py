"""`rlite-pubsub top`: what goes on at a server, or in a store, as tables that are drawn anew every few seconds.

Promises:
 - Looking changes nothing, and costs the server one look for each interval.
 - A name is shown escaped: whoever may name a topic cannot command the terminal of whoever watches it.
 - A server that goes away is waited for; the terminal is left as it was, however it ends.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from rlite_pubsub.cli_ending import run
from rlite_pubsub.cli_target import add_target, client_of, folder_of, is_server, must_exist
from rlite_pubsub.cli_top_keys import Choice, Keyboard
from rlite_pubsub.cli_top_reading import Reading, read
from rlite_pubsub.cli_top_screen import screen
from rlite_pubsub.cli_top_tables import SORTS, page
from rlite_pubsub.cli_top_text import page_lines

DEFAULT_INTERVAL_S = 2.0
DEFAULT_LIMIT = 1000


def main(words: list[str]) -> int:
    """Show until told to stop."""
    return run(_parser(), words[1:])


def _parser() -> argparse.ArgumentParser:
    summary = "Show rates, topics, groups and subscribers, as they change. Keys: q, left, right, r and /."
    parser = argparse.ArgumentParser(prog="rlite-pubsub top", description=summary)
    add_target(parser)
    parser.add_argument(
        "-i", "--interval", type=_seconds, default=DEFAULT_INTERVAL_S, help="seconds between looks (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="print one page, with the rates of one interval, and end")
    parser.add_argument("--json", action="store_true", help="a JSON object for each look, one a line")
    parser.add_argument("--sort", choices=SORTS, default=SORTS[0], help="default: depth")
    parser.add_argument("--match", default="*", metavar="PATTERN", help="only topics whose name matches")
    parser.add_argument(
        "--limit", type=int, default=DEFAULT_LIMIT, help=f"look at so many topics, by name (default: {DEFAULT_LIMIT})"
    )
    parser.set_defaults(run=_top)
    return parser


def _top(arguments: argparse.Namespace) -> int:
    target: str = arguments.store
    if not is_server(target):
        must_exist(folder_of(target))
    choice = Choice(arguments.sort)
    with client_of(target, tries_again=False) as client:

        def look() -> Reading:
            return read(client, arguments.match, arguments.limit, is_server=is_server(target))

        if arguments.once or arguments.json:
            _print(look, choice, arguments)
        else:
            _watch(look, choice, arguments.interval)
    return 0


def _print(look: Callable[[], Reading], choice: Choice, arguments: argparse.Namespace) -> None:
    before = look()
    while True:
        time.sleep(arguments.interval)
        now = look()
        found = page(before, now, choice.sort)
        print(json.dumps(found.about()) if arguments.json else "\n".join(page_lines(found)), flush=True)
        if arguments.once:
            return
        before = now


def _watch(look: Callable[[], Reading], choice: Choice, interval_s: float) -> None:
    before, now = None, look()
    signal.signal(signal.SIGTERM, _leave)
    with Keyboard() as keyboard, screen() as drawn:
        trouble = ""
        while not choice.is_over:
            shown = page(before, now, choice.sort, is_reversed=choice.is_reversed, wanted=choice.wanted)
            drawn.draw(shown, trouble + choice.foot)
            next_look_s = (now.at_s if not trouble else time.monotonic()) + interval_s
            if not _press(keyboard, choice, next_look_s):
                continue
            try:
                before, now, trouble = now, look(), ""
            except _lost() as failure:
                trouble = f"[{failure}]   "


def _press(keyboard: Keyboard, choice: Choice, until_s: float) -> bool:
    """Whether it is time for the next look; not, where a key has been pressed."""
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        return True
    keys = keyboard.wait(left_s)
    for key in keys:
        choice.press(key)
    return not keys


def _lost() -> tuple[type[Exception], ...]:
    from redis.exceptions import ConnectionError, TimeoutError

    return ConnectionError, TimeoutError


def _leave(number: int, frame: Any) -> None:
    """By way of all contexts: they leave the terminal as it was."""
    sys.exit(128 + number)


def _seconds(word: str) -> float:
    seconds = float(word)
    if not 0.1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError("0.1 or more")
    return seconds
