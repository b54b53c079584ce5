"""FUNCTION and FCALL: libraries of functions, which are the store's."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import count_of_keys
from rlite_pubsub.engine.functions.libraries import Libraries
from rlite_pubsub.engine.functions.library import ENGINE, Catalogue, Function, FunctionError, Library
from rlite_pubsub.engine.refusal import refused
from rlite_pubsub.engine.scripts.busy import BUSY_SCRIPT, kill
from rlite_pubsub.engine.scripts.cache import FLAGS
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.monitor import feed_monitors
from rlite_pubsub.engine.table import Arg, KeySpec, command, container
from rlite_pubsub.protocol.errors import CommandError, c_string, subcommand_syntax
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.rdb import envelope, functions
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.protocol.replies import OK, Reply, SetReply, Status
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.functions.functions import Functions
    from rlite_pubsub.engine.scripts.run import ScriptRun

_MODES = (Arg("async", "pure-token", token="ASYNC"), Arg("sync", "pure-token", token="SYNC"))
_POLICIES = (
    Arg("flush", "pure-token", token="FLUSH"),
    Arg("append", "pure-token", token="APPEND"),
    Arg("replace", "pure-token", token="REPLACE"),
)
_UNKNOWN_USE = "We cannot tell how the keys will be used so we assume the worst, "
_CALL_ARGUMENTS = (
    Arg("function"),
    Arg("numkeys", "integer"),
    Arg("key", "key", optional=True, multiple=True, key_spec=0),
    Arg("arg", optional=True, multiple=True),
)


@command(
    "fcall",
    arity=-3,
    flags="noscript skip_monitor may_replicate no_mandatory_keys stale movablekeys",
    is_plain=True,
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Invoke a function",
    complexity="Depends on the function that is executed.",
    arguments=_CALL_ARGUMENTS,
    key_specs=(
        KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 2), ("keynum", 0, 1, 1), notes=_UNKNOWN_USE + "RW and UPDATE"),
    ),
)
def fcall(session: CommandSession, args: list[bytes]) -> Reply:
    return _call(session, args, False)


@command(
    "fcall_ro",
    arity=-3,
    flags="noscript skip_monitor no_mandatory_keys stale readonly movablekeys",
    is_plain=True,
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Invoke a read-only function",
    complexity="Depends on the function that is executed.",
    arguments=_CALL_ARGUMENTS,
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 2), ("keynum", 0, 1, 1), notes=_UNKNOWN_USE + "RO and ACCESS"),),
)
def fcall_ro(session: CommandSession, args: list[bytes]) -> Reply:
    return _call(session, args, True)


def _call(session: CommandSession, args: list[bytes], read_only: bool) -> Reply:
    engine = session.engine
    if engine.monitors:
        feed_monitors(session, args)  # before what the function executes
    try:
        function = _libraries_of(session).function(args[1])
    except StoreError as failure:
        raise refused(failure) from failure
    if function is None:
        raise CommandError(b"ERR Function not found")
    keys = count_of_keys(args, refusal=b"ERR Bad number of keys provided")
    functions: Functions = engine.libraries.functions
    return functions.call(session, args, function, keys, read_only)


container(
    "function",
    arity=-2,
    group="scripting",
    since="7.0.0",
    summary="A container for function commands",
    complexity="Depends on subcommand.",
)


@command(
    "function|load",
    arity=-3,
    flags="noscript write denyoom",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Create a function with the given arguments (name, code, description)",
    complexity="O(1) (considering compilation time is redundant)",
    arguments=(Arg("replace", "pure-token", token="REPLACE", optional=True), Arg("function-code")),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def function_load(session: CommandSession, args: list[bytes]) -> Reply:
    for word in args[2:-1]:
        if word.lower() != b"replace":
            raise CommandError(b"ERR Unknown option given: " + c_string(word))
    try:
        return _libraries_of(session).load(args[-1], replace=len(args) > 3)
    except FunctionError as failure:
        raise CommandError(b"ERR " + failure.text) from failure
    except StoreError as failure:
        raise refused(failure) from failure


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
    try:
        was_there = _libraries_of(session).delete(args[2])
    except StoreError as failure:
        raise refused(failure) from failure
    if not was_there:
        raise CommandError(b"ERR Library not found")
    return OK


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
    if len(args) == 3 and args[2].lower() not in (b"async", b"sync"):
        raise CommandError(b"ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
    try:
        _libraries_of(session).flush()
    except StoreError as failure:
        raise refused(failure) from failure
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
    with_code, pattern = False, None
    for word in words:
        option = word.lower()
        if option == b"withcode" and not with_code:
            with_code = True
        elif option == b"libraryname" and pattern is None:
            pattern = next(words, None)
            if pattern is None:
                raise CommandError(b"ERR library name argument was not given")
        else:
            raise CommandError(b"ERR Unknown argument %b" % c_string(word))
    found = _libraries(session)
    if pattern is not None:
        glob = Glob(pattern, nocase=True)
        found = [library for library in found if glob.matches(library.name)]
    return [_shown(library, with_code=with_code) for library in found]


def _libraries_of(session: CommandSession) -> Libraries:
    from rlite_pubsub.engine.functions.functions import functions_of  # with it comes Lua

    functions_of(session.engine)
    return session.engine.libraries


def _libraries(session: CommandSession) -> list[Library]:
    return list(_catalogue(_libraries_of(session)).libraries.values())


def _catalogue(libraries: Libraries) -> Catalogue:
    try:
        return libraries.catalogue()
    except StoreError as failure:
        raise refused(failure) from failure


def _shown(library: Library, *, with_code: bool) -> Reply:
    shown: dict[Reply, Reply] = {
        b"library_name": library.name,
        b"engine": ENGINE,
        b"functions": [_shown_function(function) for function in library.functions.values()],
    }
    if with_code:
        shown[b"library_code"] = library.code
    return shown


def _shown_function(function: Function) -> Reply:
    flags = SetReply([Status(flag) for flag in FLAGS if flag in (function.flags or ())])
    return {b"name": function.name, b"description": function.description, b"flags": flags}


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
    run: ScriptRun | None = session.engine.scripts.running
    if run is not None and run.is_eval:
        raise CommandError(BUSY_SCRIPT)
    libraries = _libraries_of(session)
    # In the midst of a function no library is loaded.
    catalogue = _catalogue(libraries) if run is None else libraries.known
    counts: Reply = {b"libraries_count": len(catalogue.libraries), b"functions_count": catalogue.functions}
    running: Reply = None
    if run is not None:
        duration_ms = int((monotonic() - run.since) * 1000)
        running = {b"name": run.name, b"command": list(run.args), b"duration_ms": duration_ms}
    return {b"running_script": running, b"engines": {ENGINE: counts}}


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
    return kill(session, is_eval=False)


@command(
    "function|dump",
    arity=2,
    flags="noscript",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Dump all functions into a serialized binary payload",
    complexity="O(N) where N is the number of functions",
)
def function_dump(session: CommandSession, args: list[bytes]) -> Reply:
    return functions.pack(library.code for library in _libraries(session))


@command(
    "function|restore",
    arity=-3,
    flags="noscript write denyoom",
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Restore all the functions on the given payload",
    complexity="O(N) where N is the number of functions on the payload",
    arguments=(Arg("serialized-value"), Arg("policy", "oneof", optional=True, arguments=_POLICIES)),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def function_restore(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 4:
        raise subcommand_syntax(args)
    policy = args[3].lower() if len(args) == 4 else b"append"
    if policy not in (b"append", b"replace", b"flush"):
        raise CommandError(
            b"ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
        )
    if not envelope.is_sealed(args[2]):
        raise CommandError(b"ERR DUMP payload version or checksum are wrong")
    try:
        _libraries_of(session).restore(
            functions.unpack(args[2]), replace=policy == b"replace", only=policy == b"flush"
        )
    except FunctionError as failure:
        raise CommandError(b"ERR " + failure.text) from failure
    except Malformed as failure:
        raise CommandError(b"ERR " + str(failure).encode()) from failure
    except StoreError as failure:
        raise refused(failure) from failure
    return OK


helps(
    "function",
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries:",
    "    * Library name",
    "    * The engine used to run the Library",
    "    * Library description",
    "    * Functions list",
    "    * Library code (if WITHCODE is given)",
    "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
    "STATS",
    "    Return information about the current function running:",
    "    * Function name",
    "    * Command used to run the function",
    "    * Duration in MS that the function is running",
    "    If no function is running, return nil",
    "    In addition, returns a list of available engines.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the libraries.",
    "    * SYNC: Synchronously flush the libraries.",
    "DUMP",
    "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE "
    "command",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
    "    control how to handle existing libraries (default APPEND):",
    "    * FLUSH: delete all existing libraries.",
    "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
    "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
    "      libraries with the new libraries (notice that even on this option there is a chance of failure",
    "      in case of functions name collision with another library).",
    group="scripting",
    since="7.0.0",
    categories="scripting",
)
