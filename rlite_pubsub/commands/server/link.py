"""LINK: links of the store to other servers. An extension.

Its arguments may have a password in them: no slow log and no monitor sees them, and no reply shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.link_words import BadLink, read_link
from rlite_pubsub.engine.refusal import refused
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import OK, Map, Reply
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.storage.commons.link_state import LinkState

_SINCE = "1.0.0"
_FLAGS = "admin noscript loading stale skip_slowlog"
_NO_SUCH = b"ERR no such link"
_NAME = (Arg("name"),)
_PATTERNS = (Arg("pattern", "pattern", multiple=True),)

container(
    "link",
    arity=-2,
    group="server",
    since=_SINCE,
    summary="A container for commands on links to other servers",
    complexity="Depends on subcommand.",
    ours=True,
)


@command(
    "link|create",
    arity=-4,
    flags=_FLAGS,
    group="server",
    since=_SINCE,
    summary="Link the store to a Redis, Valkey, cluster or sentinel, or to another store",
    complexity="O(1)",
    arguments=(
        Arg("name"),
        Arg("url"),
        Arg("channels", "block", token="CHANNELS", optional=True, arguments=_PATTERNS),
        Arg("topics", "block", token="TOPICS", optional=True, arguments=_PATTERNS),
        Arg(
            "direction",
            "oneof",
            token="DIRECTION",
            optional=True,
            arguments=tuple(Arg(word, "pure-token", token=word.upper()) for word in ("in", "out", "both")),
        ),
        Arg("prefix", token="PREFIX", optional=True),
        Arg("id", token="FROM", optional=True),
    ),
    ours=True,
)
def link_create(session: CommandSession, args: list[bytes]) -> Reply:
    """All channels, both ways, where nothing else is said."""
    links = session.engine.links
    try:
        name, words = read_link(args[2:])
        if name in links.every():
            raise CommandError(b"ERR the link exists already: LINK DELETE first")
        links.put(name, words)
    except BadLink as refusal:
        raise CommandError(b"ERR " + str(refusal).encode()) from refusal
    except StoreError as failure:
        raise refused(failure) from failure
    return OK


@command(
    "link|delete",
    arity=3,
    flags=_FLAGS,
    group="server",
    since=_SINCE,
    summary="Delete a link",
    complexity="O(1)",
    arguments=_NAME,
    ours=True,
)
def link_delete(session: CommandSession, args: list[bytes]) -> Reply:
    """Remove a link; answer how many there were: 1 or 0. The position of its topics stays in the target, for a link
    created again."""
    links = session.engine.links
    name = args[2].decode("latin-1")
    try:
        if name not in links.every():
            return 0
        links.remove(name)
    except StoreError as failure:
        raise refused(failure) from failure
    return 1


@command(
    "link|pause",
    arity=3,
    flags=_FLAGS,
    group="server",
    since=_SINCE,
    summary="Pause a link: nothing goes over it until it is resumed",
    complexity="O(1)",
    arguments=_NAME,
    ours=True,
)
def link_pause(session: CommandSession, args: list[bytes]) -> Reply:
    return _pause(session, args, is_paused=True)


@command(
    "link|resume",
    arity=3,
    flags=_FLAGS,
    group="server",
    since=_SINCE,
    summary="Resume a link: its topics go on where they were",
    complexity="O(1)",
    arguments=_NAME,
    ours=True,
)
def link_resume(session: CommandSession, args: list[bytes]) -> Reply:
    return _pause(session, args, is_paused=False)


def _pause(session: CommandSession, args: list[bytes], *, is_paused: bool) -> Reply:
    links = session.engine.links
    name = args[2].decode("latin-1")
    try:
        words = links.every().get(name)
        if words is None:
            raise CommandError(_NO_SUCH)
        if words["is_paused"] != is_paused:
            links.put(name, words | {"is_paused": is_paused})
    except StoreError as failure:
        raise refused(failure) from failure
    return OK


@command(
    "link|list",
    arity=2,
    flags=_FLAGS,
    group="server",
    since=_SINCE,
    summary="List the links with their states",
    complexity="O(N) where N is the number of links.",
    ours=True,
)
def link_list(session: CommandSession, args: list[bytes]) -> Reply:
    try:
        states = session.engine.links.states()
    except StoreError as failure:
        raise refused(failure) from failure
    words = [[(b"name", each.name), (b"url", each.url), (b"state", each.state)] for each in states]
    return [Map([(word, _bytes(text)) for word, text in each]) for each in words]


@command(
    "link|info",
    arity=3,
    flags=_FLAGS,
    group="server",
    since=_SINCE,
    summary="Show a link: what it is for, its state, its counters and its topics",
    complexity="O(N) where N is the number of its topics.",
    arguments=_NAME,
    ours=True,
)
def link_info(session: CommandSession, args: list[bytes]) -> Reply:
    links = session.engine.links
    name = args[2].decode("latin-1")
    try:
        words = links.every().get(name)
        state = next((each for each in links.states() if each.name == name), None)
    except StoreError as failure:
        raise refused(failure) from failure
    if words is None or state is None:
        raise CommandError(_NO_SUCH)
    asked = [
        (b"channels", [_bytes(each) for each in words["channels"]]),
        (b"topics", [_bytes(each) for each in words["topics"]]),
        (b"direction", _bytes(words["direction"])),
        (b"prefix", _bytes(words["prefix"])),
    ]
    return Map(_state(state) + asked + [(b"topic-states", _topics(state))])


def _state(state: LinkState) -> list[tuple[Reply, Reply]]:
    found: list[tuple[Reply, Reply]] = []
    for field, value in vars(state).items():
        if field != "topics":
            found.append((field.replace("_", "-").encode(), _bytes(value) if isinstance(value, str) else int(value)))
    return found


def _topics(state: LinkState) -> list[Reply]:
    return [
        Map([(word.encode(), _bytes(value) if isinstance(value, str) else int(value)) for word, value in each.items()])
        for each in state.topics
    ]


def _bytes(text: str) -> bytes:
    return text.encode("latin-1", "replace")


@command(
    "link|join",
    arity=2,
    flags="admin noscript loading stale fast",
    group="server",
    since=_SINCE,
    summary="Internal command used by linked stores",
    complexity="O(1)",
    doc_flags=("syscmd",),
    ours=True,
)
def link_join(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1 if this store's process with links listens, 0 if it is being started, so that the caller asks again; and
    the store's id."""
    try:
        is_heard, id = session.engine.links.join()
        return [int(is_heard), id.encode()]
    except StoreError as failure:
        raise refused(failure) from failure


helps(
    "link",
    "CREATE <name> <url> [CHANNELS <pattern> ...] [TOPICS <pattern> ...] [DIRECTION IN|OUT|BOTH] [PREFIX <prefix>]"
    " [FROM <id>]",
    "    Link the store to another server. Channels go both ways, and topics out, unless said otherwise.",
    "LIST",
    "    Show the links and their states.",
    "INFO <name>",
    "    Show one link with its counters and topics.",
    "PAUSE <name>",
    "    Let nothing go over a link.",
    "RESUME <name>",
    "    Let a link go on.",
    "DELETE <name>",
    "    Delete a link.",
    group="server",
    since=_SINCE,
    ours=True,
)
