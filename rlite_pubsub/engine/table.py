"""The command table. A command is declared where it is written: `@command("publish", arity=3, flags="pubsub fast", …)`.

Arity, flags, ACL categories, COMMAND INFO, COMMAND DOCS and the reference's table all come from that one declaration.
A subcommand is declared as `client|setname`; its container first, as `container("client", …)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from rlite_pubsub.protocol import errors
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Error, Reply

Handler: TypeAlias = Callable[[Any, list[bytes]], Reply]
"""Takes its session (engine/session.py, which knows commands, as the table does not of sessions) and all arguments,
the command's name first. Raises CommandError to refuse."""


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument, as COMMAND DOCS shows it."""

    name: str
    type: str = "string"
    """string, integer, double, key, pattern, unix-time, pure-token, oneof or block."""
    token: str | None = None
    optional: bool = False
    multiple: bool = False
    multiple_token: bool = False
    key_spec: int | None = None
    since: str | None = None
    deprecated_since: str | None = None
    summary: str | None = None
    arguments: tuple[Arg, ...] = ()


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Where a command's keys stand, as COMMAND INFO shows it."""

    flags: tuple[str, ...]
    begin: tuple[Any, ...]
    """("index", n) or ("keyword", word, start)"""
    find: tuple[Any, ...]
    """("range", last, step, limit) or ("keynum", index, first, step)"""
    notes: str | None = None


_ANY_NUMBER: Final = 1 << 60


@dataclass(slots=True, eq=False)
class Command:
    """The declaration of a command."""

    name: bytes
    """Lower case; `client|setname` for a subcommand."""
    handler: Handler | None
    """None for a container that cannot be called on its own."""
    arity: int
    """With the name counted; negative for "at least"."""
    flags: frozenset[str]
    group: str
    since: str
    summary: str
    complexity: str = ""
    categories: frozenset[str] = frozenset()
    """ACL categories beyond those implied by flags and group, without the @."""
    arguments: tuple[Arg, ...] = ()
    key_specs: tuple[KeySpec, ...] = ()
    tips: tuple[str, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    doc_flags: tuple[str, ...] = ()
    deprecated_since: str | None = None
    replaced_by: str | None = None
    ours: bool = False
    """Not a Redis command."""
    subcommands: dict[bytes, Command] = field(default_factory=dict)
    is_plain: bool = False
    """Changes nothing about its session or the engine, and never waits for keys: dispatch may take the plain way."""
    find_keys: Callable[[list[bytes]], list[tuple[int, KeySpec]]] | None = None
    """Finds the places of its keys where its key specs cannot."""
    merge: Callable[[list[bytes], list[Reply]], Reply] | None = None
    """In a server with workers all execute it, and this merges their answers (engine/workers/merging.py)."""
    merges_refusals: bool = False
    """The other workers execute it even if the first one refuses it."""
    reads_topics: bool = False
    """It may need data from the cold store."""
    fewest: int = field(init=False)
    most: int = field(init=False)
    """The number of arguments, with the name counted."""

    def __post_init__(self) -> None:
        self.fewest = abs(self.arity)
        self.most = self.arity if self.arity >= 0 else _ANY_NUMBER

    def accepts(self, count: int) -> bool:
        """Return whether `count` arguments, with the name counted, are the right number."""
        return self.fewest <= count <= self.most


class Table:
    """All commands, by name in lower case."""

    def __init__(self) -> None:
        self.commands: dict[bytes, Command] = {}
        self.spellings: dict[bytes, Command] = {}  # names in the case that clients mostly use; `find` finds the others
        self._subcommands: dict[bytes, dict[bytes, Command]] = {}
        self._declare_rest: Callable[[], object] | None = None

    def declare_later(self, declare_rest: Callable[[], object]) -> None:
        """Declare the other commands later, where start-up must be quick: `declare_rest` is called once, when a name is
        not found."""
        self._declare_rest = declare_rest

    def add(self, command: Command) -> None:
        """Add a declaration; a name can be declared once. A subcommand may come before its container."""
        parent_name, _, child = command.name.partition(b"|")
        subcommands = self._subcommands.setdefault(parent_name, {})
        siblings = subcommands if child else self.commands
        name = child or parent_name
        if name in siblings:
            raise ValueError(f"{command.name.decode()} is declared twice")
        siblings[name] = command
        if not child:
            command.subcommands = subcommands
            self.spellings[name] = self.spellings[name.upper()] = command

    def find(self, name: bytes) -> Command | None:
        """Return the command of this name in any case, or None. Finds containers, not their subcommands."""
        command = self.spellings.get(name) or self.commands.get(name.lower())
        if command is None and self._declare_rest is not None:
            self.complete()
            return self.find(name)
        return command

    def find_full(self, name: bytes) -> Command | None:
        """Like `find`, but `client|setname` finds the subcommand."""
        parent_name, separator, child = name.lower().partition(b"|")
        parent = self.commands.get(parent_name)
        return parent.subcommands.get(child) if parent is not None and separator else parent

    def resolve(self, args: list[bytes]) -> Command:
        """Return the command, or subcommand, that a request names. Raises CommandError."""
        command = self.find(args[0])
        if command is None:
            raise errors.unknown_command(args)
        if command.subcommands and len(args) > 1:
            subcommand = command.subcommands.get(args[1].lower())
            if subcommand is None:
                if self._declare_rest is not None:
                    self.complete()
                    return self.resolve(args)
                raise errors.unknown_subcommand(args)
            command = subcommand
        return command

    def complete(self) -> None:
        """Declare all commands now."""
        declare_rest, self._declare_rest = self._declare_rest, None
        if declare_rest is not None:
            declare_rest()


TABLE: Final = Table()

_PLAIN_GROUPS: Final = frozenset(
    ("bitmap", "generic", "geo", "hash", "hyperloglog", "list", "set", "sorted-set", "stream", "string")
)
_TOPIC_GROUPS: Final = frozenset(("generic", "scripting", "stream"))
_NOT_PLAIN: Final = frozenset(
    ("admin", "blocking", "noscript", "protected", "pubsub", "no_auth", "no_multi", "movablekeys")
)


def command(
    name: str, *, arity: int, group: str, since: str, summary: str, flags: str = "", categories: str = "", **more: Any
) -> Callable[[Handler], Handler]:
    """Declare the function below as the handler of a command."""

    def declare(handler: Handler) -> Handler:
        TABLE.add(_declaration(name, handler, arity, group, since, summary, flags, categories, more))
        return handler

    return declare


def stub(name: str, answer: Reply, **declaration: Any) -> None:
    """Declare a command that always gives the same answer; an `Error` refuses."""

    def same(session: Any, args: list[bytes]) -> Reply:
        if isinstance(answer, Error):
            raise CommandError(answer)
        return answer

    command(name, **declaration)(same)


def container(
    name: str, *, arity: int, group: str, since: str, summary: str, flags: str = "", categories: str = "", **more: Any
) -> None:
    """Declare a command that has only subcommands."""
    TABLE.add(_declaration(name, None, arity, group, since, summary, flags, categories, more))


def _declaration(
    name: str,
    handler: Handler | None,
    arity: int,
    group: str,
    since: str,
    summary: str,
    flags: str,
    categories: str,
    more: dict[str, Any],
) -> Command:
    words = frozenset(flags.split())
    more.setdefault("reads_topics", group in _TOPIC_GROUPS)
    more.setdefault("is_plain", handler is not None and group in _PLAIN_GROUPS and not words & _NOT_PLAIN)
    return Command(
        name=name.encode(),
        handler=handler,
        arity=arity,
        flags=words,
        group=group,
        since=since,
        summary=summary,
        categories=frozenset(categories.split()),
        **more,
    )
