"""The commands that print what shells and `man` are told of this command line. Both are made from its declarations."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.extras import missing
from rlite_pubsub.version import __version__

SHELLS = ("bash", "zsh", "fish")
FOR_STARTERS = """\
bash:  rlite-pubsub completion bash > ~/.local/share/bash-completion/completions/rlite-pubsub
zsh:   rlite-pubsub completion zsh > "${fpath[1]}/_rlite-pubsub"
fish:  rlite-pubsub completion fish > ~/.config/fish/completions/rlite-pubsub.fish
"""
MAN_HELP = """\
rlite-pubsub man > ~/.local/share/man/man1/rlite-pubsub.1 has `man rlite-pubsub` find it.
"""


def completion(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = FOR_STARTERS
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=_completion)


def man(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    parser.epilog = MAN_HELP
    parser.set_defaults(run=_man)


def _completion(arguments: argparse.Namespace) -> int:
    shtab = _library("shtab")
    parser = _whole()
    for action in _actions(parser):
        if action.type in (None, str) and action.choices is None and _names_file(action):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    return 0


def _man(arguments: argparse.Namespace) -> int:
    manpage = _library("argparse_manpage.manpage")
    parser = _whole()
    told = {
        "project_name": "rlite-pubsub",
        "version": __version__,
        "manual_title": "rlite-pubsub",
        "description": parser.description,
        "url": "https://github.com/rlite-pubsub/rlite-pubsub",
    }
    print(manpage.Manpage(parser, told), end="")
    return 0


def _whole() -> argparse.ArgumentParser:
    """Return all commands with all of their options."""
    from rlite_pubsub.cli.command_line import SUBCOMMANDS, parser_of

    parser = parser_of(SUBCOMMANDS)
    for action in _actions(parser):
        if action.nargs == argparse.REMAINDER:
            action.nargs = "*"  # so it is shown, and completed
    return parser


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the actions of all commands."""
    found: list[argparse.Action] = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                found += _actions(one)
    return found


def _names_file(action: argparse.Action) -> bool:
    shown = str(action.metavar or action.dest).upper()
    return any(word in shown for word in ("FILE", "FOLDER", "STORE", "SOCKET", "PATH")) or action.dest in (
        "dir",
        "logfile",
        "pidfile",
        "aclfile",
        "unixsocket",
    )


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as failure:
        raise CommandFailed(missing("this", "cli")) from failure
