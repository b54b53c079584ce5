"""The rights of HTTP clients: a token's come from its line of a file, a server user's from its rules.

    # a comment
    TOKEN read orders.* events write orders.new

Patterns are those of PSUBSCRIBE; the event bus is the topic `events`. Lists, metrics and what else is of no one name
take the right to read `*`; a stream of a pattern takes that very pattern, or `*`. Only digests of tokens are kept.

A user may do what it may as a Redis client, and no path tells more than the commands that tell the same:

    GET  a channel, or patterns     SUBSCRIBE, PSUBSCRIBE
    POST to a channel               PUBLISH
    GET  a topic, the events        XRANGE
    GET  …/info, …/blocks           TOPIC.INFO, TOPIC.BLOCKS
    GET  …/groups                   XINFO GROUPS
    GET  …/groups/{group}/info      TOPIC.INFO, XINFO GROUPS, XINFO CONSUMERS
    GET  …/pending, …/dead_letters  XPENDING; XINFO GROUPS, and XRANGE of both topics
    POST to a topic, events         XADD
    POST …/pause, /resume, /requeue TOPIC.PAUSE, TOPIC.RESUME, TOPIC.REQUEUE
    POST …/redeliver                TOPIC.REQUEUE, XCLAIM, and XDEL of the topic of dead letters
    GET  a key                      TYPE, and what reads each type: GET, LRANGE, HSCAN, SSCAN, ZRANGE, XRANGE
    GET  the keys                   SCAN, and to read all keys
    connections                     SUBSCRIBER.CLIENTS, SUBSCRIBER.KILL
    all else: lists, metrics …      to read, or to write, whatever there is: all channels and all keys; and TOPIC.LIST,
                                    XINFO GROUPS, PUBSUB CHANNELS, SUBSCRIBER.LIST or INFO

Promise: a stream ends when its user or its token may no longer read it, or no longer exists, and when the session of
the page whose token opened it has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlite_pubsub.engine.access.acl_vocabulary import vocabulary
from rlite_pubsub.engine.access.permission import CHANNEL, COMMAND, KEY, MissingRight, refusal_of
from rlite_pubsub.engine.access.selector import READ, WRITE
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.gateway.access.logins import digest
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http.request import Receive, Scope, parameters
from rlite_pubsub.gateway.http.target import CHANNELS, CONNECTIONS, KEYS, SESSION, TOPICS
from rlite_pubsub.protocol.glob import Glob

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.user import User
    from rlite_pubsub.gateway.http.target import RequestTarget

log = logging.getLogger("rlite_pubsub")

REREAD_SECONDS = 1.0
MIN_TOKEN_BYTES = 16
"""A shorter one can be guessed."""
_ALL = b"*"
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_OF_TOPIC = "/api/topics/{name}"
_OF_GROUP = f"{_OF_TOPIC}/groups/{{group}}"
_READS: dict[str, tuple[tuple[bytes, ...], ...]] = {
    f"{_OF_TOPIC}/info": ((b"topic.info",),),
    f"{_OF_TOPIC}/blocks": ((b"topic.blocks",),),
    f"{_OF_TOPIC}/groups": ((b"xinfo", b"groups"),),
    f"{_OF_GROUP}/info": ((b"topic.info",), (b"xinfo", b"groups"), (b"xinfo", b"consumers")),
    f"{_OF_GROUP}/pending": ((b"xpending",),),
    f"{_OF_GROUP}/dead_letters": ((b"xinfo", b"groups"), (b"xrange",)),
}
"""Other than XRANGE: what shows it to a Redis client. The topic's name follows."""
_CHANGES: dict[str, tuple[bytes, ...]] = {
    f"{_OF_TOPIC}/pause": (b"topic.pause",),
    f"{_OF_TOPIC}/resume": (b"topic.resume",),
    f"{_OF_GROUP}/pause": (b"topic.pause",),
    f"{_OF_GROUP}/resume": (b"topic.resume",),
    f"{_OF_GROUP}/requeue": (b"topic.requeue",),
    f"{_OF_GROUP}/redeliver": (b"topic.requeue", b"xclaim"),
}
"""Other than XADD."""
_LISTS: dict[str, tuple[tuple[bytes, ...], ...]] = {
    TOPICS: ((b"topic.list",),),
    "/api/groups": ((b"topic.list",), (b"xinfo", b"groups", _ALL)),
    CHANNELS: ((b"pubsub", b"channels"),),
    "/api/patterns": ((b"pubsub", b"numpat"), (b"subscriber.list",)),
    "/api/subscribers": ((b"subscriber.list",),),
    "/api/warnings": ((b"info",),),
    "/api/stats": ((b"info",),),
    "/api/stats/history": ((b"info",),),
    "/metrics": ((b"info",),),
}
"""What shows these to a Redis client. Besides, they take the right to read everything."""
_CLIENTS = [b"subscriber.clients"]
_KILL = [b"subscriber.kill", b"0" * 16, b"1"]
_CHANGING = frozenset((b"publish", b"subscriber.kill"))
"""Beside those that write keys."""
TOKEN = b"(token)"
"""Shown in place of a user's name."""


class BadTokens(ValueError):
    """The file of tokens can't be used; the text says why, and never a token."""


class Names(NamedTuple):
    """Names that a token covers."""

    patterns: tuple[bytes, ...] = ()

    def cover(self, name: bytes) -> bool:
        """Return whether a name is one of them."""
        return any(Glob(pattern).matches(name) for pattern in self.patterns)

    def cover_pattern(self, pattern: bytes) -> bool:
        """Return whether all names of this pattern surely are."""
        return pattern in self.patterns or _ALL in self.patterns


class Rights(NamedTuple):
    """The rights of a token."""

    read: Names = Names()
    write: Names = Names()


class TokenFile:
    """The tokens of a file, which is read again within a second where it has changed. What is not right then is logged,
    and the old ones hold on."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """Raises BadTokens."""
        self._path = path
        self._clock = clock
        self._checked_at = clock()
        self._seen = _version(path)
        self._tokens = load(path)

    def rights(self, token: bytes) -> Rights | None:
        """Return the rights of the token with this digest; None if there is none."""
        self.reread()
        return self._tokens.get(token)

    def reread(self) -> None:
        """Read the file again if it has changed, once a second."""
        now = self._clock()
        if self._checked_at <= now < self._checked_at + REREAD_SECONDS:
            return
        self._checked_at = now
        version = _version(self._path)
        if version != self._seen:
            self._seen = version
            try:
                self._tokens = load(self._path)
            except BadTokens as failure:
                log.warning("%s. The old ones still hold.", failure)


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def load(path: Path) -> dict[bytes, Rights]:
    """Return the rights of each token, by its digest. Raises BadTokens."""
    try:
        text = path.read_bytes()
    except OSError as failure:
        raise BadTokens(f"Can't read the tokens: {failure.strerror}") from failure
    found: dict[bytes, Rights] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        token, *rest = words
        if len(token) < MIN_TOKEN_BYTES:
            raise BadTokens(f"Line {number} of the tokens: a token has at least {MIN_TOKEN_BYTES} bytes")
        if digest(token) in found:
            raise BadTokens(f"Line {number} of the tokens: this token has a line already")
        found[digest(token)] = _rights(rest, number)
    return found


def _rights(words: Iterable[bytes], number: int) -> Rights:
    said: dict[bytes, list[bytes]] = {b"read": [], b"write": []}
    verb: list[bytes] | None = None
    for word in words:
        if word in said:
            verb = said[word]
        elif verb is None:
            raise BadTokens(f"Line {number} of the tokens: after the token comes read or write")
        else:
            verb.append(word)
    return Rights(Names(tuple(said[b"read"])), Names(tuple(said[b"write"])))


def refused(user: User, scope: Scope) -> MissingRight | None:
    """Return what this user lacks for this request; None: nothing."""
    if user.is_unrestricted or scope["target"].path == SESSION:
        return None
    target: RequestTarget = scope["target"]
    is_read = scope["method"] in SAFE
    requests = list(_requests(target, scope, is_read))
    is_of_all = not requests
    requests += [list(words) for words in _LISTS.get(target.path, ())] if is_of_all else []
    for words in requests:
        refusal = refusal_of(user, TABLE.resolve(words), words)
        if refusal is not None:
            return refusal
    return _refused_all(user, READ if is_read else WRITE) if is_of_all else None


def _requests(target: RequestTarget, scope: Scope, is_read: bool) -> Iterator[list[bytes]]:
    """Yield the requests that a Redis client would send for it."""
    name = target.name
    if target.path.startswith(CONNECTIONS):
        yield _CLIENTS if is_read else _KILL
    elif target.path.startswith(KEYS):
        yield from _reading(name) if name else [[b"scan", b"0"], *_reading(_ALL)]
    elif target.path.startswith(CHANNELS):
        if name:
            yield [b"subscribe", name] if is_read else [b"publish", name, b""]
            return
        for key, value in parameters(scope["query_string"]):
            if key == "pattern" and is_read:
                yield [b"psubscribe", value.encode()]
    elif name and is_read:
        for command in _READS.get(target.path, ((b"xrange",),)):
            yield [*command, name, target.group or b"-", b"+"]
    elif name:
        for verb in _CHANGES.get(target.path, (b"xadd",)):
            yield [verb, name, target.group or b"*", b"", b""]


def _reading(key: bytes) -> list[list[bytes]]:
    """Return the requests that show a key, of whatever type."""
    return [
        [b"type", key],
        [b"pttl", key],
        [b"get", key],
        [b"lrange", key, b"0", b"-1"],
        [b"hscan", key, b"0"],
        [b"sscan", key, b"0"],
        [b"zrange", key, b"0", b"-1"],
        [b"xrange", key, b"-", b"+"],
    ]


def _changes(command: bytes) -> bool:
    """Return whether a command needs the right to write."""
    return command in _CHANGING or "write" in TABLE.commands[command].flags


class Caller(NamedTuple):
    """The client, as a user of the server or by a token."""

    user: User | None
    rights: Rights | None = None
    """Of a token."""

    @property
    def name(self) -> str | None:
        """The user's; None: a token has none."""
        return self.user.name.decode(errors="backslashreplace") if self.user is not None else None

    def may(self, *words: bytes) -> bool:
        """Return whether a Redis client's request with these words, the first of which is a command with a key, would
        be granted."""
        if self.user is not None:
            return self.user.is_unrestricted or refusal_of(self.user, TABLE.resolve(list(words)), list(words)) is None
        names = self._names(_changes(words[0]))
        return names.cover(words[1]) if TABLE.commands[words[0]].key_specs else names.cover_pattern(_ALL)

    def names(self, command: bytes, *, is_of_channels: bool = False) -> list[str]:
        """Return the patterns of names that it may use this command with."""
        if self.user is None:
            return [event.text_of(pattern) for pattern in self._names(_changes(command)).patterns]
        bit, mode = vocabulary().words[command].bit, WRITE if _changes(command) else READ
        found: dict[bytes, None] = {}
        for selector in self.user.all_selectors:
            if not selector.allows_command(bit, command, None):
                continue
            if is_of_channels:
                found |= dict.fromkeys([_ALL] if selector.all_channels else selector.channels)
            elif selector.all_keys:
                found[_ALL] = None
            else:
                found |= dict.fromkeys([pattern for pattern, may in selector.keys.items() if may & mode])
        return [event.text_of(pattern) for pattern in found]

    def sees_all(self) -> bool:
        """Return whether it may read everything there is in keys and channels."""
        if self.user is None:
            return self._names(is_write=False).cover_pattern(_ALL)
        return self.user.is_unrestricted or _refused_all(self.user, READ) is None

    def _names(self, is_write: bool) -> Names:
        assert self.rights is not None
        return self.rights.write if is_write else self.rights.read


def _refused_all(user: User, mode: int) -> MissingRight | None:
    """Return what a user lacks for reading, or changing, everything."""
    words = [b"psubscribe", _ALL] if mode == READ else [b"publish", _ALL, b""]
    selectors = user.all_selectors
    if refusal_of(user, TABLE.commands[words[0]], words) is not None:
        return MissingRight(CHANNEL, 1, _ALL)
    if not any(selector.all_channels or _ALL in selector.channels for selector in selectors):
        return MissingRight(CHANNEL, 1, _ALL)
    if not any(selector.all_keys or selector.keys.get(_ALL, 0) & mode for selector in selectors):
        return MissingRight(KEY, 1, _ALL)
    words = [b"xrange", _ALL, b"-", b"+"] if mode == READ else [b"xadd", _ALL, b"*", b"", b""]
    return MissingRight(COMMAND, 0, words[0]) if refusal_of(user, TABLE.commands[words[0]], words) is not None else None


class Visit:
    """One request, as long as it is being answered. Its user or its token may lose the right to it meanwhile."""

    __slots__ = ("_receive", "_waiting", "is_over", "login", "scope", "token", "user_name")

    def __init__(self, user_name: bytes, scope: Scope, token: bytes = b"", login: bytes = b"") -> None:
        """`token`: the digest of the token that was shown; `login`: that of a session of the page. Else empty."""
        self.user_name = user_name
        self.scope = scope
        self.token = token
        self.login = login
        self.is_over = False
        self._waiting: asyncio.Task[Any] | None = None
        self._receive: Receive

    def end(self) -> None:
        """End the visit: its client has lost the right to it, and for the handler the peer is gone."""
        self.is_over = True
        if self._waiting is not None:
            self._waiting.cancel()

    def receiving(self, receive: Receive) -> Receive:
        """Like `receive`, until the visit ends."""
        self._receive = receive
        return self._receive_until_over

    async def _receive_until_over(self) -> MutableMapping[str, Any]:
        if self.is_over:
            return {"type": "http.disconnect"}
        self._waiting = asyncio.current_task()
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if not self.is_over or self._waiting is None:
                raise
            self._waiting.uncancel()
            return {"type": "http.disconnect"}
        finally:
            self._waiting = None
