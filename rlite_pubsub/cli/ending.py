"""The end of a command: 0 if all went well, 1 (jobs have others) with one line if not, 130 after Ctrl-C.

The line names the folder or the URL that the command was about. A reader of the output that goes away (`| head`) ends
it silently, and is no failure.
"""

from __future__ import annotations

import argparse
import os
import sys

from rlite_pubsub.cli.secrets import without_password
from rlite_pubsub.cli.terminal import close_door, harmless


class CommandFailed(Exception):
    """A command cannot go on; the text says why."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code
        """The exit code."""


def run(arguments: argparse.Namespace) -> int:
    """Call the `run` that the command's parser has set; the exit code."""
    from redis.exceptions import RedisError

    from rlite_pubsub.storage.errors import StoreError

    if not vars(arguments).get("draws"):
        close_door()
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _drop_output()
        return 0
    except (CommandFailed, RedisError, StoreError, OSError) as failure:
        text = _text(failure)
        is_named = any(text.startswith(f"{named}{end}") for named in _named(arguments) for end in (":", " "))
        place = None if is_named else _place(arguments, is_connection=isinstance(failure, RedisError))
        say(_with_place(text, place))
        return failure.code if isinstance(failure, CommandFailed) else 1


def say(what: str) -> None:
    """Tell the user something that is no output."""
    print(f"rlite-pubsub: {harmless(what)}", file=sys.stderr, flush=True)


def _named(arguments: argparse.Namespace) -> list[str]:
    """What the command's arguments name, as they are shown."""
    words = [word for word in vars(arguments).values() if isinstance(word, str) and word]
    return [shown for word in words for shown in (without_password(word), os.path.abspath(word))]


def _text(failure: Exception) -> str:
    """Return what went wrong, without the number that an OSError begins with."""
    if isinstance(failure, OSError) and failure.strerror and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}"
    return str(failure)


def _place(arguments: argparse.Namespace, *, is_connection: bool) -> str | None:
    """Return what the command was about; if it moves something elsewhere, its connection is there."""
    names = ("to", "store", "url") if is_connection else ("store", "url")
    return next((vars(arguments)[name] for name in names if vars(arguments).get(name)), None)


def _with_place(what: str, target: str | None) -> str:
    """Return what went wrong, and where."""
    if target is None:
        return what
    place = without_password(target)
    return what if place in what else f"{place}: {what}"


def _drop_output() -> None:
    """Drop what is still buffered: Python would write it at its end, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
