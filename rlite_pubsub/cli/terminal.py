"""The one door to the terminal: no string of somebody else's, such as a channel's name, commands it.

What a command prints goes through here if standard output, or standard error, is a terminal: characters that would
command it are escaped. To a file or a pipe all goes as it is. `cli` and `top` draw on the terminal, so they are let
through, and escape what they are told by themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from rlite_pubsub.cli.text import escape_of, escaped

if TYPE_CHECKING:
    from typing import TextIO


def harmless(text: str) -> str:
    """Return the text with escapes in place of what would command a terminal: control characters, those that turn the
    direction of writing, and bytes that are no text. Lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() or each in "\n\t" else escape_of(each) for each in text])


class Door:
    """A terminal's stream, for whoever prints."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def close_door() -> None:
    """Let what is printed from now on through the door only, where that leads to a terminal."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Door) and stream.isatty():
            setattr(sys, name, cast("TextIO", Door(stream)))


def put(*words: bytes) -> None:
    """Write one line of somebody else's words: as they are, or escaped for a terminal, so that it stays one line."""
    if sys.stdout.isatty():
        print(" ".join(map(escaped, words)), flush=True)
    else:
        sys.stdout.buffer.write(b" ".join(words) + b"\n")
        sys.stdout.buffer.flush()
