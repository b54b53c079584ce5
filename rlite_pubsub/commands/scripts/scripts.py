"""SCRIPT: the scripts that this process knows, and the one that runs."""

from __future__ import annotations

import hashlib

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.scripts.busy import kill
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import OK, Reply

_MODES = (Arg("async", "pure-token", token="ASYNC"), Arg("sync", "pure-token", token="SYNC"))

container(
    "script",
    arity=-2,
    group="scripting",
    since="2.6.0",
    summary="A container for Lua scripts management commands",
    complexity="Depends on subcommand.",
)


@command(
    "script|load",
    merge=merging.by_all,
    arity=3,
    flags="noscript stale",
    group="scripting",
    since="2.6.0",
    categories="scripting",
    summary="Load the specified Lua script into the script cache.",
    complexity="O(N) with N being the length in bytes of the script body.",
    arguments=(Arg("script"),),
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
)
def script_load(session: CommandSession, args: list[bytes]) -> Reply:
    engine, body = session.engine, args[2]
    script = engine.scripts.by_body.get(body)
    if script is None:
        from rlite_pubsub.engine.scripts.runner import runner_of  # with it comes Lua

        script = runner_of(engine).load(hashlib.sha1(body).hexdigest().encode(), body)
    return script.name


@command(
    "script|debug",
    arity=3,
    flags="noscript",
    group="scripting",
    since="3.2.0",
    categories="scripting",
    summary="Set the debug mode for executed scripts.",
    complexity="O(1)",
    arguments=(
        Arg(
            "mode",
            "oneof",
            arguments=(
                Arg("yes", "pure-token", token="YES"),
                Arg("sync", "pure-token", token="SYNC"),
                Arg("no", "pure-token", token="NO"),
            ),
        ),
    ),
)
def script_debug(session: CommandSession, args: list[bytes]) -> Reply:
    mode = args[2].lower()
    if mode == b"no":
        return OK
    if mode in (b"yes", b"sync"):
        raise CommandError(b"ERR there is no debugger for scripts here")
    raise CommandError(b"ERR Use SCRIPT DEBUG YES/SYNC/NO")


@command(
    "script|flush",
    merge=merging.by_all,
    arity=-2,
    flags="noscript",
    group="scripting",
    since="2.6.0",
    categories="scripting",
    summary="Remove all the scripts from the script cache.",
    complexity="O(N) with N being the number of scripts in cache",
    arguments=(Arg("async", "oneof", optional=True, since="6.2.0", arguments=_MODES),),
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
    history=(("6.2.0", "Added the `ASYNC` and `SYNC` flushing mode modifiers."),),
)
def script_flush(session: CommandSession, args: list[bytes]) -> Reply:
    if not _names_a_mode(args):
        raise CommandError(b"ERR SCRIPT FLUSH only support SYNC|ASYNC option")
    session.engine.scripts.flush()
    return OK


def _names_a_mode(args: list[bytes]) -> bool:
    return len(args) == 2 or (len(args) == 3 and args[2].lower() in (b"async", b"sync"))


@command(
    "script|exists",
    arity=-3,
    flags="noscript",
    group="scripting",
    since="2.6.0",
    categories="scripting",
    summary="Check existence of scripts in the script cache.",
    complexity="O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
    arguments=(Arg("sha1", multiple=True),),
    tips=("request_policy:all_shards", "response_policy:agg_logical_and"),
)
def script_exists(session: CommandSession, args: list[bytes]) -> Reply:
    find = session.engine.scripts.find
    return [int(find(sha) is not None) for sha in args[2:]]


@command(
    "script|kill",
    merge=merging.by_any,
    merges_refusals=True,
    arity=2,
    flags="noscript allow_busy",
    group="scripting",
    since="2.6.0",
    categories="scripting",
    summary="Kill the script currently in execution.",
    complexity="O(1)",
    tips=("request_policy:all_shards", "response_policy:one_succeeded"),
)
def script_kill(session: CommandSession, args: list[bytes]) -> Reply:
    return kill(session, is_eval=True)


helps(
    "script",
    "DEBUG (YES|SYNC|NO)",
    "    Set the debug mode for subsequent scripts executed. There is no debugger here.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
    group="scripting",
    since="5.0.0",
    categories="scripting",
)
