"""How a subcommand ends: 0 if all went well, 1 with one line if not, 130 after Ctrl-C.

A reader of the output that goes away (`| head`) ends it silently, and is no failure.
"""

from __future__ import annotations

import argparse
import os
import sys


class CommandFailed(Exception):
    """A subcommand cannot go on; the text says why."""


def run(parser: argparse.ArgumentParser, words: list[str]) -> int:
    """Parse, and call the `run` that the parser has set; the exit code."""
    arguments = parser.parse_args(words)
    from redis.exceptions import RedisError

    from rlite_pubsub.storage.errors import StoreError

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
        say(str(failure))
        return 1


def say(what: str) -> None:
    """Tell the user something that is no output."""
    print(f"rlite-pubsub: {what}", file=sys.stderr, flush=True)


def _drop_output() -> None:
    """What is still buffered goes nowhere: Python would write it at its end, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
