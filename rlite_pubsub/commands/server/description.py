"""A command as COMMAND INFO and COMMAND DOCS tell of it: replies made from its declaration, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from rlite_pubsub.engine.access.categories import categories_of
from rlite_pubsub.engine.table import Arg, Command, KeySpec
from rlite_pubsub.protocol.replies import Map, Reply, Set, Status

_FLAGS = (
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
        _statuses(flag for flag in _FLAGS if flag in flags),
        first,
        last,
        step,
        _statuses(f"@{category}" for category in categories_of(command)),
        Set([tip.encode() for tip in command.tips]),
        Set([_key_spec(spec) for spec in command.key_specs]),
        [info_of(subcommand) for subcommand in command.subcommands.values()] or Set(),
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
        docs.append((b"history", Set([[since.encode(), change.encode()] for since, change in command.history])))
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
    return Set([Status(word.encode()) for word in words])


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
