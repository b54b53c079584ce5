"""COMMAND: what commands there are, told from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlite_pubsub.commands.server.description import docs_of, info_of, key_flags
from rlite_pubsub.engine.access.categories import categories_of
from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.key_places import has_keys, keys_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE, Arg, Command, KeySpec, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import Map, Reply

_FLAGS = "loading stale sentinel"
_IN_ANY_ORDER = ("nondeterministic_output_order",)
_PER_COMMAND = "O(N) where N is the number of commands to look up"
_NAMES = (Arg("command-name", optional=True, multiple=True),)


@command(
    "command",
    arity=-1,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    categories="connection",
    summary="Get array of Redis command details",
    complexity="O(N) where N is the total number of Redis commands",
    tips=_IN_ANY_ORDER,
)
def command_(session: CommandSession, args: list[bytes]) -> Reply:
    return [info_of(one) for one in TABLE.commands.values()]


@command(
    "command|count",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    categories="connection",
    summary="Get total number of Redis commands",
    complexity="O(1)",
)
def command_count(session: CommandSession, args: list[bytes]) -> Reply:
    return len(TABLE.commands)


@command(
    "command|info",
    arity=-2,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    categories="connection",
    summary="Get array of specific Redis command details, or all when no argument is given.",
    complexity=_PER_COMMAND,
    arguments=_NAMES,
    tips=_IN_ANY_ORDER,
    history=(("7.0.0", "Allowed to be called with no argument to get info on all commands."),),
)
def command_info(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 2:
        return [info_of(one) for one in TABLE.commands.values()]
    return [info_of(one) if one is not None else None for one in map(TABLE.find_full, args[2:])]


@command(
    "command|docs",
    arity=-2,
    flags=_FLAGS,
    group="server",
    since="7.0.0",
    categories="connection",
    summary="Get array of specific Redis command documentation",
    complexity=_PER_COMMAND,
    arguments=_NAMES,
    tips=_IN_ANY_ORDER,
)
def command_docs(session: CommandSession, args: list[bytes]) -> Reply:
    asked = TABLE.commands.values() if len(args) == 2 else map(TABLE.find_full, args[2:])
    return Map([(one.name, docs_of(one)) for one in asked if one is not None])


@command(
    "command|list",
    arity=-2,
    flags=_FLAGS,
    group="server",
    since="7.0.0",
    categories="connection",
    summary="Get an array of Redis command names",
    complexity="O(N) where N is the total number of Redis commands",
    arguments=(
        Arg(
            "filterby",
            "oneof",
            token="FILTERBY",
            optional=True,
            arguments=(
                Arg("module-name", token="MODULE"),
                Arg("category", token="ACLCAT"),
                Arg("pattern", "pattern", token="PATTERN"),
            ),
        ),
    ),
    tips=_IN_ANY_ORDER,
)
def command_list(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = _wanted(args)
    return [one.name for one in _all_commands() if wanted(one)]


def _all_commands() -> Iterable[Command]:
    for one in TABLE.commands.values():
        yield one
        yield from one.subcommands.values()


def _wanted(args: list[bytes]) -> Callable[[Command], bool]:
    """Who passes the filter of COMMAND LIST."""
    if len(args) == 2:
        return lambda one: True
    if len(args) != 5 or args[2].lower() != b"filterby":
        raise CommandError(SYNTAX)
    by, value = args[3].lower(), args[4]
    if by == b"module":
        return lambda one: False  # no module can be loaded
    if by == b"aclcat":
        category = value.decode("latin-1").lower()
        return lambda one: category in categories_of(one)
    if by == b"pattern":
        matches = Glob(value, nocase=True).matches
        return lambda one: matches(one.name)
    raise CommandError(SYNTAX)


@command(
    "command|getkeys",
    arity=-4,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    categories="connection",
    summary="Extract keys given a full Redis command",
    complexity="O(N) where N is the number of arguments to the command",
)
def command_getkeys(session: CommandSession, args: list[bytes]) -> Reply:
    return [key for key, _ in _keys(args[2:])]


@command(
    "command|getkeysandflags",
    arity=-4,
    flags=_FLAGS,
    group="server",
    since="7.0.0",
    categories="connection",
    summary="Extract keys and access flags given a full Redis command",
    complexity="O(N) where N is the number of arguments to the command",
)
def command_getkeysandflags(session: CommandSession, args: list[bytes]) -> Reply:
    return [[key, key_flags(spec)] for key, spec in _keys(args[2:])]


def _keys(request: list[bytes]) -> list[tuple[bytes, KeySpec]]:
    try:
        one = TABLE.resolve(request)
    except CommandError:
        raise CommandError(b"ERR Invalid command specified") from None
    if not has_keys(one):
        raise CommandError(b"ERR The command has no key arguments")
    if not one.accepts(len(request)):
        raise CommandError(b"ERR Invalid number of arguments specified for command")
    keys = keys_of(one, request)
    if not keys:
        if "no_mandatory_keys" in one.flags:
            return []
        raise CommandError(b"ERR Invalid arguments specified for command")
    return keys


helps(
    "command",
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
    flags=_FLAGS,
    group="server",
    since="5.0.0",
    categories="connection",
)
