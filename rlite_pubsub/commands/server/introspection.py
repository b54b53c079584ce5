"""COMMAND: what commands there are, told from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlite_pubsub.engine.access.categories import categories_of
from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.key_places import has_keys, keys_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE, Arg, Command, KeySpec, command
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import Encoded, Map, Reply, SetReply, Status

# -- A command as COMMAND INFO and COMMAND DOCS tell of it: replies made from its declaration, and nothing else.

_COMMAND_FLAGS = (
    "write readonly denyoom module admin pubsub noscript blocking loading stale skip_monitor skip_slowlog asking fast "
    "no_auth no_mandatory_keys no_async_loading no_multi movablekeys allow_busy"
).split()
"""Those that are shown, in this order; the others are nobody's business."""

_KEY_FLAGS = "RO RW OW RM access update insert delete not_key incomplete variable_flags".split()
_WITH_PARTS = frozenset(("oneof", "block"))


def info_of(command: Command) -> Reply:
    """The ten elements of COMMAND INFO."""
    first, last, step, movable = _key_range(command.key_specs)
    flags = command.flags | {"movablekeys"} if movable else command.flags
    return [
        command.name,
        command.arity,
        _statuses(flag for flag in _COMMAND_FLAGS if flag in flags),
        first,
        last,
        step,
        _statuses(f"@{category}" for category in categories_of(command)),
        SetReply([tip.encode() for tip in command.tips]),
        SetReply([_key_spec(spec) for spec in command.key_specs]),
        [info_of(subcommand) for subcommand in command.subcommands.values()] or SetReply(),
    ]


def docs_of(command: Command) -> Reply:
    """The map of COMMAND DOCS; what a declaration leaves out is left out."""
    docs = Map([(b"summary", command.summary.encode()), (b"since", command.since.encode())])
    docs.append((b"group", command.group.encode()))
    if command.complexity:
        docs.append((b"complexity", command.complexity.encode()))
    if command.doc_flags:
        docs.append((b"doc_flags", _statuses(command.doc_flags)))
    if command.deprecated_since:
        docs.append((b"deprecated_since", command.deprecated_since.encode()))
    if command.replaced_by:
        docs.append((b"replaced_by", command.replaced_by.encode()))
    if command.history:
        docs.append((b"history", SetReply([[since.encode(), change.encode()] for since, change in command.history])))
    if command.arguments:
        docs.append((b"arguments", [_argument(one) for one in command.arguments]))
    if command.subcommands:
        docs.append((b"subcommands", Map([(one.name, docs_of(one)) for one in command.subcommands.values()])))
    return docs


def key_flags(spec: KeySpec) -> Reply:
    """The flags of the keys that a key spec finds."""
    declared = {flag.lower() for flag in spec.flags}
    return _statuses(flag for flag in _KEY_FLAGS if flag.lower() in declared)


def _statuses(words: Iterable[str]) -> Reply:
    return SetReply([Status(word.encode()) for word in words])


def _argument(arg: Arg) -> Reply:
    said = Map([(b"name", arg.name.lower().encode()), (b"type", arg.type.encode())])
    if arg.key_spec is not None:
        said.append((b"key_spec_index", arg.key_spec))
    for name, text in (
        (b"token", arg.token and arg.token.upper()),
        (b"summary", arg.summary),
        (b"since", arg.since),
        (b"deprecated_since", arg.deprecated_since),
    ):
        if text is not None:
            said.append((name, text.encode()))
    flags = {"optional": arg.optional, "multiple": arg.multiple, "multiple_token": arg.multiple_token}
    if any(flags.values()):
        said.append((b"flags", _statuses(flag for flag, holds in flags.items() if holds)))
    if arg.type in _WITH_PARTS:
        said.append((b"arguments", [_argument(part) for part in arg.arguments]))
    return said


_BEGIN_FIELDS = {"index": ("index",), "keyword": ("keyword", "startfrom"), "unknown": ()}
_FIND_FIELDS = {
    "range": ("lastkey", "keystep", "limit"),
    "keynum": ("keynumidx", "firstkey", "keystep"),
    "unknown": (),
}


def _key_spec(spec: KeySpec) -> Reply:
    said = Map([(b"notes", spec.notes.encode())] if spec.notes else [])
    said.append((b"flags", key_flags(spec)))
    said.append((b"begin_search", _search(spec.begin, _BEGIN_FIELDS)))
    said.append((b"find_keys", _search(spec.find, _FIND_FIELDS)))
    return said


def _search(search: tuple[str | int, ...], fields: dict[str, tuple[str, ...]]) -> Reply:
    kind, *values = search
    names = fields[str(kind)]
    spec = [
        (name.encode(), value.encode() if isinstance(value, str) else value)
        for name, value in zip(names, values, strict=True)
    ]
    return Map([(b"type", str(kind).encode()), (b"spec", Map(spec))])


def _key_range(specs: tuple[KeySpec, ...]) -> tuple[int, int, int, bool]:
    """First key, last key and step for clients that know no key specs, and whether those miss any keys."""
    movable = any("INCOMPLETE" in spec.flags for spec in specs)
    if len(specs) == 1 and _is_range(specs[0]):
        first, (_, last, step, _) = specs[0].begin[1], specs[0].find
        return first, last + first if last >= 0 else last, step, movable
    firsts: list[int] = []
    last_key = 0
    for spec in specs:
        if not _is_range(spec) or spec.find[2] != 1 or (last_key and last_key != spec.begin[1] - 1):
            movable = True
            continue
        first, last = spec.begin[1], spec.find[1]
        firsts.append(first)
        last_key = last if last < 0 or last_key < 0 else max(last_key, last + first)
    if not firsts:
        return 0, 0, 0, movable or bool(specs)
    return min(firsts), last_key, 1, movable


def _is_range(spec: KeySpec) -> bool:
    return bool(spec.begin[0] == "index" and spec.find[0] == "range")


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
    told = _told(session, info_of)
    return [told(one) if one is not None else None for one in map(TABLE.find_full, args[2:])]


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
    if len(args) == 2:
        return Map([(one.name, docs_of(one)) for one in TABLE.commands.values()])
    told = _told(session, docs_of)
    return Map([(one.name, told(one)) for one in map(TABLE.find_full, args[2:]) if one is not None])


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
    """The commands that pass the filter of COMMAND LIST."""
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
    keys = _keys(args[2:])
    flags = {id(spec): encode(key_flags(spec), session.protocol) for spec in {id(one): one for _, one in keys}.values()}
    return [Encoded(b"*2\r\n$%d\r\n%b\r\n%b" % (len(key), key, flags[id(spec)])) for key, spec in keys]


def _told(session: CommandSession, tell: Callable[[Command], Reply]) -> Callable[[Command], Reply]:
    """Return what tells of a command in bytes, which are made once: somebody may ask for it a thousand times."""
    made: dict[bytes, Encoded] = {}

    def told(one: Command) -> Reply:
        found = made.get(one.name)
        if found is None:
            found = made[one.name] = Encoded(encode(tell(one), session.protocol))
        return found

    return told


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
