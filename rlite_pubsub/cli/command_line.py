"""`rlite-pubsub`: the command line. Nothing heavy is imported before it is known to be needed.

A command is a row of `THEMES`: its word, its summary, and the function that declares its options on a parser and says
by `set_defaults(run=...)` what is to be done. Help, completion and the man page are made from these declarations.
`serve` declares its options, too, but reads them as redis-server does.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from rlite_pubsub.cli.parser import CommandParser, meant, refusal

PROGRAM = "rlite-pubsub"
_VERSION = ("-v", "-V", "--version")


class Subcommand(NamedTuple):
    """A word, `module:function` below rlite_pubsub.cli that declares it, and what it does."""

    word: str
    declaration: str
    summary: str


THEMES: dict[str, tuple[Subcommand, ...]] = {
    "Run a server": (
        Subcommand("serve", "serving.flags:serve", "Serve Redis clients, and HTTP if it is asked for."),
    ),
    "Ask": (Subcommand("cli", "prompt.command:cli", "Send commands, or open a prompt, as redis-cli does."),),
    "Publish and read": (
        Subcommand("publish", "following.channels:publish", "Publish a message and print how many received it."),
        Subcommand("subscribe", "following.channels:subscribe", "Print what is published to channels."),
        Subcommand("psubscribe", "following.channels:psubscribe", "Print what is published to channels that match."),
        Subcommand("tail", "following.tail:tail", "Follow a topic, or a channel that is not retained."),
        Subcommand("events", "following.events:events", "Post and follow events over HTTP."),
    ),
    "Look": (
        Subcommand("top", "top:top", "Show rates, topics, groups and subscribers, as they change."),
        Subcommand("discover", "discover:discover", "List the servers of this machine, or those in a directory."),
        Subcommand("channels", "following.channels:channels", "List the channels that have subscribers."),
        Subcommand("subscribers", "store:subscribers", "List the subscribers of a store: processes, names, backlogs."),
        Subcommand("doctor", "doctor.doctor:doctor", "Check a store or a server, and clean up after dead subscribers."),
    ),
    "Look after a store": (
        Subcommand("backup", "backup:backup", "Copy a store that is in use to a folder or a bucket."),
        Subcommand("restore", "backup:restore", "Make a store from a backup."),
        Subcommand("backups", "backup:backups", "List the states that a backup has."),
        Subcommand("verify", "backup:verify", "Read all of a backup, and report what is wrong."),
        Subcommand("compact", "store:compact", "Give free pages of a store back to the file system."),
        Subcommand("import", "moving:importing", "Make a store from Redis's files, or from a running Redis."),
        Subcommand("export", "moving:exporting", "Write a store's keys into an RDB file."),
        Subcommand("cold", "cold:cold", "List, verify, restore and rebuild the cold store."),
        Subcommand("shard", "shards:shard", "Spread keys and queues over several servers."),
        Subcommand("pipeline", "pipeline:pipeline", "Work on topics in bulk, on Spark."),
    ),
    "This command line": (
        Subcommand("completion", "shells:completion", "Print a script that completes commands in a shell."),
        Subcommand("man", "shells:man", "Print the man page: rlite-pubsub man | man -l -"),
    ),
}
SUBCOMMANDS = {each.word: each for theme in THEMES.values() for each in theme}

HELP = """\
Usage: rlite-pubsub COMMAND ...
       rlite-pubsub COMMAND --help
       rlite-pubsub --version

{commands}

Most commands take -s STORE: a store's folder, by default ./store, or a running server as
localhost, HOST:PORT, a unix socket, or a redis://, rediss:// or unix:// URL.

Examples:
  rlite-pubsub serve
  rlite-pubsub serve --http-port 8080
  rlite-pubsub serve /etc/redis/redis.conf --loglevel verbose
  rlite-pubsub publish news hello
  rlite-pubsub tail -s localhost orders --from 10m
"""


def help_text() -> str:
    """Return the text of --help."""
    blocks = []
    for theme, subcommands in THEMES.items():
        lines = [f"  {each.word:12} {each.summary}" for each in subcommands]
        blocks.append("\n".join([f"{theme}:", *lines]))
    return HELP.format(commands="\n\n".join(blocks))


def parser_of(words: Iterable[str]) -> CommandParser:
    """Return the command line with the options of these commands: to know a command's options is to import it."""
    chosen = set(words)
    parser = CommandParser(prog=PROGRAM, description="What SQLite is to SQL, this is to Redis pub/sub.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in SUBCOMMANDS.values():
        command = commands.add_parser(each.word, help=each.summary, description=each.summary)
        if each.word in chosen:
            module, _, function = each.declaration.partition(":")
            getattr(import_module(f"rlite_pubsub.cli.{module}"), function)(command)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 if all went well, 1 if not, and 2 for arguments that make no sense."""
    args = sys.argv[1:] if argv is None else argv
    if not args:
        print(help_text(), end="", file=sys.stderr)
        return 1
    word, rest = args[0], args[1:]
    if word in ("-h", "--help", "help"):
        print(help_text(), end="")
        return 0
    if word in _VERSION or (word == "serve" and rest[:1] and rest[0] in _VERSION):
        return _print_version()
    if word not in SUBCOMMANDS:
        what = "option" if word.startswith("-") else "command"
        print(refusal(PROGRAM, f"unknown {what} {word}{meant(word, SUBCOMMANDS)}"), file=sys.stderr)
        return 1
    _hide_passwords(word, rest)
    if word == "serve":
        gc.disable()  # up to `settle_memory`: nothing of what is imported goes again
        try:
            from rlite_pubsub.cli.serving.serve import main as serve

            return serve(rest)
        finally:
            gc.enable()
    from rlite_pubsub.cli.ending import run

    return run(parser_of([word]).parse_args(args))


def _hide_passwords(word: str, words: list[str]) -> None:
    """Before anything else is imported: everybody on the machine reads them until then."""
    if word == "serve" or any("://" in argument for argument in words):
        from rlite_pubsub.cli.secrets import hide, in_flags, in_urls

        hide(in_flags(words) if word == "serve" else in_urls(words))


def _print_version() -> int:
    from rlite_pubsub import __version__
    from rlite_pubsub.build import shadowing, state

    print(f"{PROGRAM} {__version__} (speaks Redis 7.0.15, {state()})")
    other = shadowing(Path())
    if other is not None:
        print(f"Python that you start in this folder imports another package: {other}")
    return 0
