"""Options of jobs: declared once, as the fields of a dataclass. The command line is made from the declaration."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar

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
    """A field. `read` makes its value of a word; `is_place`: it needs no --name; a tuple takes several words."""
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
    """The options that were said."""
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
