"""The keys of `rlite-pubsub top`: what they choose, and how they are read."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty
from dataclasses import dataclass
from types import TracebackType

from rlite_pubsub.cli_top_tables import SORTS

HELP = "q quit   left/right sort   r reverse   / filter"
_KEYS = {"\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left", "\x7f": "rub", "\b": "rub"}
_PRESSED = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


@dataclass
class Choice:
    """What is shown, and in which order."""

    sort: str
    is_reversed: bool = False
    wanted: str = ""
    is_typing: bool = False
    is_over: bool = False

    def press(self, key: str) -> None:
        """Change it; a key that means nothing changes nothing."""
        if self.is_typing:
            self._type(key)
        elif key in ("left", "right"):
            step = 1 if key == "right" else -1
            self.sort = SORTS[(SORTS.index(self.sort) + step) % len(SORTS)]
        elif key == "r":
            self.is_reversed = not self.is_reversed
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._is_there:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> list[str]:
        """The keys that are pressed; none if none is within so many seconds."""
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
