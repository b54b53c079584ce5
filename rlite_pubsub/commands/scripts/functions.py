"""FUNCTION: no function is loaded and none running."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.protocol.errors import CommandError, c_string, subcommand_syntax
from rlite_pubsub.protocol.replies import OK, Reply

_MODES = (Arg("async", "pure-token", token="ASYNC"), Arg("sync", "pure-token", token="SYNC"))
_NOTHING_RUNS = b"NOTBUSY No scripts in execution right now."


def _names_a_mode(args: list[bytes]) -> bool:
    return len(args) == 2 or (len(args) == 3 and args[2].lower() in (b"async", b"sync"))


container(
    "function",
    arity=-2,
    group="scripting",
    since="7.0.0",
    summary="A container for function commands",
    complexity="Depends on subcommand.",
)


@command(
    "function|flush",
    arity=-2,
    flags="noscript write",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Deleting all functions",
    complexity="O(N) where N is the number of functions deleted",
    arguments=(Arg("async", "oneof", optional=True, arguments=_MODES),),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def function_flush(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise subcommand_syntax(args)
    if not _names_a_mode(args):
        raise CommandError(b"ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
    return OK


@command(
    "function|list",
    arity=-2,
    flags="noscript",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="List information about all the functions",
    complexity="O(N) where N is the number of functions",
    arguments=(
        Arg("library-name-pattern", token="LIBRARYNAME", optional=True),
        Arg("withcode", "pure-token", token="WITHCODE", optional=True),
    ),
    tips=("nondeterministic_output_order",),
)
def function_list(session: CommandSession, args: list[bytes]) -> Reply:
    words = iter(args[2:])
    said: set[bytes] = set()
    for word in words:
        option = word.lower()
        if option in said or option not in (b"withcode", b"libraryname"):
            raise CommandError(b"ERR Unknown argument %b" % c_string(word))
        said.add(option)
        if option == b"libraryname" and next(words, None) is None:
            raise CommandError(b"ERR library name argument was not given")
    return []


@command(
    "function|delete",
    arity=3,
    flags="noscript write",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Delete a function by name",
    complexity="O(1)",
    arguments=(Arg("library-name"),),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def function_delete(session: CommandSession, args: list[bytes]) -> Reply:
    raise CommandError(b"ERR Library not found")


@command(
    "function|stats",
    arity=2,
    flags="noscript allow_busy",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Return information about the function currently running (name, description, duration)",
    complexity="O(1)",
    tips=("nondeterministic_output", "request_policy:all_shards", "response_policy:special"),
)
def function_stats(session: CommandSession, args: list[bytes]) -> Reply:
    return {b"running_script": None, b"engines": {}}


@command(
    "function|kill",
    arity=2,
    flags="noscript allow_busy",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Kill the function currently in execution.",
    complexity="O(1)",
    tips=("request_policy:all_shards", "response_policy:one_succeeded"),
)
def function_kill(session: CommandSession, args: list[bytes]) -> Reply:
    raise CommandError(_NOTHING_RUNS)


helps(
    "function",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries. There are none here.",
    "STATS",
    "    Return which function is running, and the engines that can run any. There are none here.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries. There is nothing to delete here.",
    group="scripting",
    since="7.0.0",
    categories="scripting",
)
