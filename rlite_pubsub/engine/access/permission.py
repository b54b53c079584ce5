"""Permission of a user to execute a request: its command, its keys and what is done with them, its channels.

A user with all rights never comes here: dispatch and the short ways of PUBLISH and XADD look at one attribute of the
session, `limits`, which is None then.

In our own commands, topics and queues are keys; a topic for dead letters counts as written; a durable subscriber is the
channel `durable:NAME`, as in the client name that attaches to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.durable.attaching import CLIENT_NAME
from rlite_pubsub.engine.access.acl_vocabulary import EVERYTHING, vocabulary
from rlite_pubsub.engine.access.selector import READ, WRITE, Selector
from rlite_pubsub.engine.arguments.stream_arguments import reading
from rlite_pubsub.engine.client_line import client_line
from rlite_pubsub.engine.key_places import key_places
from rlite_pubsub.engine.table import TABLE, Command, KeySpec
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.user import User
    from rlite_pubsub.engine.session import CommandSession

COMMAND, KEY, CHANNEL = b"command", b"key", b"channel"
_RANKS = {COMMAND: 1, KEY: 2, CHANNEL: 3}
_REFUSALS = {
    COMMAND: b"NOPERM this user has no permissions to run the '%b' command",
    KEY: b"NOPERM this user has no permissions to access one of the keys used as arguments",
    CHANNEL: b"NOPERM this user has no permissions to access one of the channels used as arguments",
}
_REASONS_IN_TRANSACTION = {
    COMMAND: b"no permission to execute the command or subcommand",
    KEY: b"no permission to touch the specified keys",
    CHANNEL: b"no permission to access one of the channels used as arguments",
}
_RULES_CHANGED = (
    b"NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "
    b"This command is no longer allowed for the following reason: %b"
)

_ONE_CHANNEL = frozenset((b"publish", b"spublish"))
_CHANNELS = frozenset((b"subscribe", b"ssubscribe"))
_PATTERNS = frozenset((b"psubscribe",))
_DURABLES = frozenset((b"subscriber.attach", b"subscriber.detach", b"subscriber.delete", b"subscriber.info"))
WITH_CHANNELS = _ONE_CHANNEL | _CHANNELS | _PATTERNS | _DURABLES

_WRITING = frozenset(("INSERT", "DELETE", "UPDATE"))


class MissingRight(NamedTuple):
    """The right that the user lacks, and the place of the argument that needs it."""

    reason: bytes
    place: int
    object: bytes
    """A command's name, a key or a channel."""


class Named(NamedTuple):
    """A key or a channel that a request names."""

    place: int
    name: bytes
    mode: int
    """For a key: READ, WRITE, or both. For a channel: whether it is a pattern."""


def refusal_of(user: User, command: Command, args: list[bytes]) -> MissingRight | None:
    """Return why this user may not execute the request; None if it may. Of several reasons, the one that came
    closest."""
    worst = MissingRight(COMMAND, 0, command.name)
    keys: list[Named] | None = None
    for selector in user.all_selectors:
        if keys is None and not selector.all_keys:
            keys = list(keys_named(command, args))
        refusal = _refusal(selector, command, args, keys or [])
        if refusal is None:
            return None
        if (_RANKS[refusal.reason], refusal.place) > (_RANKS[worst.reason], worst.place):
            worst = refusal
    return worst


def reads_all_keys(user: User, command: Command, args: list[bytes]) -> bool:
    """Return whether a single selector allows both the request and reading any key."""
    keys = list(keys_named(command, args))
    return any(
        (selector.all_keys or selector.keys.get(b"*", 0) & READ) and _refusal(selector, command, args, keys) is None
        for selector in user.all_selectors
    )


def _refusal(selector: Selector, command: Command, args: list[bytes], keys: list[Named]) -> MissingRight | None:
    if selector.allowed != EVERYTHING and "no_auth" not in command.flags:
        bit = vocabulary().words[command.name].bit
        if not selector.allows_command(bit, command.name, args[1] if len(args) > 1 else None):
            return MissingRight(COMMAND, 0, command.name)
    if not selector.all_keys:
        for place, key, mode in keys:
            if not selector.allows_key(key, mode):
                return MissingRight(KEY, place, key)
    if not selector.all_channels and command.name in WITH_CHANNELS:
        for place, name, is_pattern in channels_named(command, args):
            if not (selector.allows_pattern(name) if is_pattern else selector.allows_channel(name)):
                return MissingRight(CHANNEL, place, name)
    return None


def keys_named(command: Command, args: list[bytes]) -> Iterator[Named]:
    """Yield the keys of a request, and what is done with them; nothing if its arguments make no sense: it is refused
    for that."""
    name = command.name
    if name in (b"xread", b"xreadgroup"):
        yield from _streams_read(command, args)
        return
    for place, spec in key_places(command, args, without_optional=True) or ():
        yield Named(place, args[place], _mode(spec))
    if name == b"topic.group":
        for place in range(3, len(args) - 1, 2):
            if args[place].upper() == b"DEADLETTER" and args[place + 1]:
                yield Named(place + 1, args[place + 1], WRITE)


def _streams_read(command: Command, args: list[bytes]) -> Iterator[Named]:
    """Yield the keys as they will be read: a group or a consumer may be named STREAMS."""
    try:
        wanted = reading(args, by_group=command.name == b"xreadgroup")
    except CommandError:
        return
    first = len(args) - 2 * len(wanted.keys)
    mode = _mode(command.key_specs[0])
    for place, key in enumerate(wanted.keys, first):
        yield Named(place, key, mode)


def _mode(spec: KeySpec) -> int:
    return (READ if "ACCESS" in spec.flags else 0) | (WRITE if not _WRITING.isdisjoint(spec.flags) else 0)


def channels_named(command: Command, args: list[bytes]) -> Iterator[Named]:
    """Yield the channels that a request publishes or subscribes to."""
    name = command.name
    if name in _DURABLES:
        for place in range(1, min(2, len(args))):
            yield Named(place, CLIENT_NAME + args[place], False)
    else:
        end = 2 if name in _ONE_CHANNEL else len(args)
        for place in range(1, end):
            yield Named(place, args[place], name in _PATTERNS)


# -- refusals


def check(session: CommandSession, user: User, command: Command, args: list[bytes]) -> None:
    """Check a request, and log a denial. Raises CommandError."""
    refusal = refusal_of(user, command, args)
    if refusal is not None:
        raise refuse(session, refusal, args)


def check_queued(session: CommandSession, user: User, command: Command, args: list[bytes]) -> bytes | None:
    """Check a command that MULTI has queued; return the reply that takes its place if it is denied."""
    refusal = refusal_of(user, command, args)
    if refusal is None:
        return None
    note(session, refusal, args, b"multi")
    return _RULES_CHANGED % _REASONS_IN_TRANSACTION[refusal.reason]


def check_found(session: CommandSession, user: User, args: list[bytes], keys: Iterable[bytes]) -> None:
    """Check that the user may write to keys that the request does not name and its command has found, and log a denial:
    a single selector must allow them with the command. Raises CommandError."""
    command = TABLE.resolve(args)
    found = [Named(0, key, WRITE) for key in sorted(keys)]
    refusals = [_refusal(selector, command, args, found) for selector in user.all_selectors]
    missing = [refusal for refusal in refusals if refusal is not None]
    if len(missing) == len(refusals):
        raise refuse(session, max(missing, key=lambda each: _RANKS[each.reason]), args)


def readable(user: User | None, names: Iterable[bytes]) -> list[bytes]:
    """Return those of these keys that a user may read; all for one who may do everything."""
    if user is None:
        return list(names)
    return [name for name in names if any(selector.allows_key(name, READ) for selector in user.all_selectors)]


def refuse(session: CommandSession, refusal: MissingRight, args: list[bytes]) -> CommandError:
    """Log the denial, and return the error for it."""
    note(session, refusal, args, b"toplevel" if session.transaction is None else b"multi")
    text = _REFUSALS[refusal.reason]
    return CommandError(text % refusal.object if refusal.reason is COMMAND else text)


def note(session: CommandSession, refusal: MissingRight, args: list[bytes], context: bytes) -> None:
    """Add an entry to ACL LOG."""
    line = client_line(session, args)
    session.engine.acl_log.note(refusal.reason, context, refusal.object, session.user, line)
