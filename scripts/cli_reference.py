"""The commands of `rlite-pubsub` with their options, in Markdown, from the declarations of their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

_LEFT_OUT = ("serve",)
"""Its options are the directives, which have a page of their own."""


def markdown() -> str:
    """A section for each theme, a part for each command."""
    from rlite_pubsub.cli.command_line import SUBCOMMANDS, THEMES, parser_of

    parsers = _subparsers(parser_of(SUBCOMMANDS))
    lines: list[str] = []
    for theme, commands in THEMES.items():
        lines += [f"### {theme}", ""]
        for each in commands:
            lines += [f"#### {each.word}", "", each.summary, ""]
            if each.word not in _LEFT_OUT:
                lines += _options(parsers[each.word])
    return "\n".join(lines)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A table, and one for each command below it."""
    rows = [_row(action) for action in parser._actions if _is_shown(action)]
    if rows:
        yield from ("| argument | meaning |", "|---|---|", *rows, "")
    for word, one in _subparsers(parser).items():
        yield f"`{parser.prog.removeprefix('rlite-pubsub ')} {word}`: {_cell(one.description or '')}"
        yield ""
        yield from _options(one)


def _row(action: argparse.Action) -> str:
    value = _value(action)
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    shown = f"{names} `{value}`" if names and value else names or f"`{value}`"
    return f"| {_cell(shown)} | {_cell(_help(action))} |"


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        return str(action.metavar)
    return "|".join(map(str, action.choices)) if action.choices is not None else action.dest.upper()


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": "rlite-pubsub"}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _is_shown(action: argparse.Action) -> bool:
    is_argument = not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    return is_argument and action.help != argparse.SUPPRESS


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}
