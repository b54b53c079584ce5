"""A line of the prompt, or of standard input: a command and how often it is sent, or a word of the prompt's own.

`3 PING` sends a command three times, and `connect HOST PORT` goes to another server, as in redis-cli.
"""

from __future__ import annotations

from dataclasses import replace

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.place import Destination
from rlite_pubsub.protocol import inline

_NO_COMMAND = "Invalid argument(s)"
_NO_NUMBER = "Invalid redis-cli repeat command option value."


class InvalidLine(Exception):
    """The line is no command; the text is what redis-cli prints then."""


class Line:
    """What a line says; without words, nothing."""

    def __init__(self, line: bytes) -> None:
        """Raises InvalidLine."""
        words = inline.split(line)
        if words is None:
            raise InvalidLine(_NO_COMMAND)
        self.words = words
        self.times = 1
        if len(words) > 1 and _is_number(words[0]):
            self.times, self.words = int(words[0]), words[1:]
            if self.times <= 0:
                raise InvalidLine(_NO_NUMBER)

    @property
    def leaves(self) -> bool:
        """Whether it ends the dialogue."""
        return bool(self.words) and self.words[0].lower() in (b"quit", b"exit")

    def moved(self, place: Destination) -> Destination | None:
        """Return the server to connect to, if that is what it says. Raises CommandFailed if no port can be that."""
        if len(self.words) != 3 or self.words[0].lower() != b"connect":
            return None
        host, port = (word.decode(errors="surrogateescape") for word in self.words[1:])
        if not port.isdecimal() or int(port) > 65535:
            raise CommandFailed(f"{port} is no port")
        return replace(place, host=host, port=int(port), unix=None, store=None)


def _is_number(word: bytes) -> bool:
    return (word[1:] if word[:1] in (b"+", b"-") else word).isdigit()
