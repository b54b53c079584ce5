"""Options of jobs: declared once, as the fields of a dataclass. The command line is made from the declaration."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from rlite_pubsub import measures

# -- Values of options as people say them. Each raises ValueError with what would be right.


def age_ms(word: str) -> int:
    """90s, 10m, 24h, 7d"""
    found = measures.age_ms(word)
    if found is None:
        raise ValueError(f"{word!r} is not an age such as 90s, 10m, 24h or 7d")
    return found


def moment_ms(word: str) -> int:
    """A time (2026-11-18 or 2026-11-18T10:00, of the local zone if it says none), an age (so long ago), or ms"""
    found = measures.moment_or_ms(word, int(time.time() * 1000), None)
    if found is None:
        raise ValueError(f"{word!r} is not a time such as 2026-11-18T10:00, or 7d for seven days ago")
    return found


def size_bytes(word: str) -> int:
    """1000000, 512mb, 10gb"""
    found = int(word) if word.isascii() and word.isdigit() else measures.size_bytes(word)
    if found is None:
        raise ValueError(f"{word!r} is not a size such as 512mb or 10gb")
    return found


def count(word: str) -> int:
    """A number from 1 on"""
    if not word.isdigit() or not int(word):
        raise ValueError(f"{word!r} is not a number of at least 1")
    return int(word)


def iso(ms: int) -> str:
    """Return a time as it is shown."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


_Declared = TypeVar("_Declared")


def option(
    about: str,
    *,
    default: Any = MISSING,
    read: Callable[[str], object] = str,
    word: str | None = None,
    metavar: str | None = None,
    is_place: bool = False,
    is_secret: bool = False,
) -> Any:
    """Return a field. `read` makes its value of a word; `is_place`: it needs no --name; a tuple takes several words."""
    told = {"about": about, "read": read, "word": word, "metavar": metavar, "is_place": is_place}
    return field(default=default, metadata=told, repr=not is_secret)


def add_options(parser: argparse.ArgumentParser, declaration: type) -> None:
    """One argument for each field."""
    for one in fields(declaration):
        told = one.metadata
        if not told:
            continue
        flag = "--" + (told["word"] or one.name).replace("_", "-")
        if told["is_place"]:
            parser.add_argument(one.name, nargs="*", metavar=told["metavar"], help=told["about"])
        elif one.default is False:
            parser.add_argument(flag, dest=one.name, action="store_true", help=told["about"])
        else:
            parser.add_argument(
                flag,
                dest=one.name,
                required=one.default is MISSING,
                default=None,
                type=_typed(told["read"]),
                metavar=told["metavar"] or (told["word"] or one.name).upper(),
                help=told["about"],
            )


def taken(declaration: type[_Declared], arguments: argparse.Namespace) -> _Declared:
    """Return the options that were said."""
    said: dict[str, Any] = {}
    for one in fields(declaration):  # type: ignore[arg-type]
        value = getattr(arguments, one.name, None)
        if one.metadata and value is not None and value != []:
            said[one.name] = tuple(value) if isinstance(value, list) else value
    return declaration(**said)


def listed(word: str) -> tuple[str, ...]:
    """Several, with commas between"""
    return tuple(filter(None, map(str.strip, word.split(","))))


def _typed(read: Callable[[str], object]) -> Callable[[str], object]:
    def convert(word: str) -> object:
        try:
            return read(word)
        except ValueError as failure:
            raise argparse.ArgumentTypeError(str(failure)) from failure

    return convert
