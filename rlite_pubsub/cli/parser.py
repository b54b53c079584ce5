"""Reading the arguments of all commands: argparse, with errors in our words.

An error is one line and names the command; for an unknown option it suggests the one that was probably meant. Arguments
are bytes where they are names or data (`type=os.fsencode`): what is no UTF-8 goes through as it came.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

USAGE_ERROR = 2


class CommandParser(argparse.ArgumentParser):
    """Reads the arguments of one command. Options are not abbreviated: a script that does so breaks when another option
    comes."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def parse_known_args(  # type: ignore[override]
        self, args: list[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """All must be known: a command says by itself what it does not know, and not the one above it."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return found, unknown

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        known = [name for action in self._actions for name in action.option_strings]
        return f"unknown option {word}{meant(word.partition('=')[0], known)}"

    def error(self, message: str) -> NoReturn:
        """One line, and where to read more. A command may have a status of its own for that (`set_defaults`)."""
        print(refusal(self.prog, message), file=sys.stderr)
        sys.exit(self.get_default("usage_status") or USAGE_ERROR)


def refusal(program: str, what: str) -> str:
    """Return what is wrong with the arguments, and where to read more."""
    return f"{program}: {what}{'' if what.endswith('?') else '.'} Try {program} --help."


def meant(word: str, known: Iterable[str]) -> str:
    """Return what was probably meant, as the end of an error; empty if nothing is close."""
    names = {name.lstrip("-"): name for name in known}  # dashes alone make no two options alike
    near = get_close_matches(word.lstrip("-"), list(names), 1)
    return f"; did you mean {names[near[0]]}?" if near else ""
