"""`rlite-pubsub`: the command line. Nothing heavy is imported before it is known to be needed.

A subcommand is a module with `main(words)`, and a row of `SUBCOMMANDS`, from which the help is made.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NamedTuple

HELP = """\
{usage}
       rlite-pubsub --version
       rlite-pubsub --help
       rlite-pubsub COMMAND --help

STORE is a folder, or for all but doctor and compact also a redis:// URL; by default ./store.

serve takes redis-server's flags and configuration files; a lone `-` reads configuration from standard input.
The store is in --dir, by default ./store.

Examples:
       rlite-pubsub serve
       rlite-pubsub serve --port 7777 --dir /var/lib/rlite-pubsub
       rlite-pubsub serve /etc/redis/redis.conf --loglevel verbose
       echo 'maxclients 128' | rlite-pubsub serve -
       rlite-pubsub tail -s redis://localhost orders --from 10m
       rlite-pubsub events tail --type-matcher '^order\\.'
"""


class Subcommand(NamedTuple):
    """A word, where it is done, and how it is used."""

    word: str
    module: str
    usage: str


SUBCOMMANDS = (
    Subcommand("serve", "serve", "[/path/to/redis.conf] [--directive value ...] [-]"),
    Subcommand("publish", "store", "[-s STORE] CHANNEL MESSAGE"),
    Subcommand("subscribe", "store", "[-s STORE] CHANNEL ..."),
    Subcommand("psubscribe", "store", "[-s STORE] PATTERN ..."),
    Subcommand("tail", "tail", "[-s STORE] TOPIC|CHANNEL [--from START|END|ID|TIME|AGE]"),
    Subcommand("top", "top", "[-s STORE] [--once]"),
    Subcommand("channels", "store", "[-s STORE] [PATTERN]"),
    Subcommand("subscribers", "store", "[-s STORE]"),
    Subcommand("doctor", "store", "[-s STORE]"),
    Subcommand("compact", "store", "[-s STORE]"),
    Subcommand("cold", "cold", "list|verify|restore|rebuild [-s STORE] [--cold URL] [--topic TOPIC] ..."),
    Subcommand("pipeline", "pipeline", "JOB [TOPIC ...] [--url URL] [--dry-run] [--json] ..."),
    Subcommand("events", "events", "post|tail [--url http://HOST:PORT] ..."),
)
_BY_WORD = {subcommand.word: subcommand for subcommand in SUBCOMMANDS}


def help_text() -> str:
    """What --help tells."""
    lines = [f"rlite-pubsub {each.word} {each.usage}" for each in SUBCOMMANDS]
    return HELP.format(usage="Usage: " + "\n       ".join(lines))


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; the exit code is 0 if all went well and 1 if not."""
    args = sys.argv[1:] if argv is None else argv
    if not args:
        print(help_text(), end="", file=sys.stderr)
        return 1
    word, rest = args[0], args[1:]
    if word in ("-h", "--help", "help") or (word == "serve" and rest[:1] in (["-h"], ["--help"])):
        print(help_text(), end="")
        return 0
    if word in ("-v", "--version") or (word == "serve" and rest[:1] in (["-v"], ["--version"])):
        return _print_version()
    if word not in _BY_WORD:
        print(f"rlite-pubsub: unknown subcommand '{word}'. Try rlite-pubsub --help.", file=sys.stderr)
        return 1
    if any("://" in argument for argument in rest):
        _hide_passwords(rest)
    return int(import_module(f"rlite_pubsub.cli.{_BY_WORD[word].module}").main(args))


def _hide_passwords(words: list[str]) -> None:
    from rlite_pubsub.cli import process_list
    from rlite_pubsub.cli.target import passwords_in

    process_list.hide(passwords_in(words))


def _print_version() -> int:
    from rlite_pubsub import __version__
    from rlite_pubsub.build import is_compiled

    print(f"rlite-pubsub {__version__} (speaks Redis 7.0.15, {'compiled' if is_compiled() else 'pure Python'})")
    return 0
