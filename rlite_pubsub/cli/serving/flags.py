"""The flags of `serve`, declared for help, completion and the man page. They are read as redis-server reads its own."""

from __future__ import annotations

import argparse

from rlite_pubsub.cli.parser import CommandParser
from rlite_pubsub.engine.settings.directive import Choice, Directive, Memory, Number, Octal, YesNo
from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.engine.settings.themes import IGNORED, THEMES

EPILOG = """\
The file has the format of redis.conf; flags override it. A lone - reads configuration from standard input.
Every flag is also a directive of the file, and CONFIG GET and CONFIG SET know it. `rlite-pubsub serve --help all` also
lists Redis's directives that are accepted and do nothing here.
"""


def serve(parser: argparse.ArgumentParser) -> None:
    """Declares all that has a meaning."""
    parser.usage = "rlite-pubsub serve [/path/to/redis.conf] [--DIRECTIVE VALUE ...] [-]"
    parser.epilog = EPILOG
    for theme, names in THEMES.items():
        group = parser.add_argument_group(theme)
        for name in names:
            _add(group, DIRECTIVES[name])


def help_text(*, everything: bool) -> str:
    """Return the text of `serve --help` and `serve --help all`."""
    parser = CommandParser(
        prog="rlite-pubsub serve",
        description="Serve Redis clients, and HTTP if it is asked for.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve(parser)
    if everything:
        group = parser.add_argument_group("Redis's directives that are accepted and do nothing here")
        for name in IGNORED:
            _add(group, DIRECTIVES[name])
    return parser.format_help()


def _add(group: argparse._ArgumentGroup, directive: Directive) -> None:
    default = b" ".join(directive.default).decode()
    told = f"(default: {default})" if default else ""
    kind = directive.kind
    choices: tuple[str, ...] | None = None
    if isinstance(kind, YesNo):
        choices = ("yes", "no")
    elif isinstance(kind, Choice):
        choices = tuple(kind.meanings)
    group.add_argument(
        f"--{directive.name}",
        choices=choices,
        metavar=_metavar(directive) if choices is None else "|".join(choices) if len(choices) < 5 else "WORD",
        nargs="+" if kind.many else None,
        help=f"{directive.meaning} {told}".strip().replace("%", "%%") or None,
    )


def _metavar(directive: Directive) -> str:
    kind = directive.kind
    if isinstance(kind, Memory):
        return "BYTES"
    if isinstance(kind, Octal):
        return "MODE"
    return "NUMBER" if isinstance(kind, Number) else "WORD"
