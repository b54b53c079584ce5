"""A user of the server who comes over HTTP: what it may do here is what it may do as a Redis client.

    GET  a channel, or patterns     SUBSCRIBE, PSUBSCRIBE
    POST to a channel               PUBLISH
    GET  a topic, the events        XRANGE
    POST to a topic, events         XADD, TOPIC.PAUSE, TOPIC.RESUME, TOPIC.REQUEUE
    all else: lists, metrics …      to read, or to write, whatever there is: all channels and all keys

Promise: a stream ends when its user may read it no more, or is no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from rlite_pubsub.engine.access.permission import CHANNEL, COMMAND, KEY, Refusal, refusal_of
from rlite_pubsub.engine.access.selector import READ, WRITE
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.gateway.http.request import Receive, Scope, parameters
from rlite_pubsub.gateway.http.target import CHANNELS

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.user import User
    from rlite_pubsub.gateway.http.target import Target

SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_VERBS = {"pause": b"topic.pause", "resume": b"topic.resume", "requeue": b"topic.requeue"}
_ALL = b"*"
TOKEN = b"(token)"
"""Shown in place of a user's name; what it may is not looked at again."""


def refused(user: User, scope: Scope) -> Refusal | None:
    """What this user lacks for this request; None: nothing."""
    if user.is_unrestricted:
        return None
    target: Target = scope["target"]
    is_read = scope["method"] in SAFE
    requests = list(_requests(target, scope, is_read))
    for words in requests:
        refusal = refusal_of(user, TABLE.commands[words[0]], words)
        if refusal is not None:
            return refusal
    return None if requests else _refused_all(user, READ if is_read else WRITE)


def _requests(target: Target, scope: Scope, is_read: bool) -> Iterator[list[bytes]]:
    """What a Redis client would say for it."""
    name = target.name
    if target.path.startswith(CHANNELS):
        if name:
            yield [b"subscribe", name] if is_read else [b"publish", name, b""]
            return
        for key, value in parameters(scope["query_string"]):
            if key == "pattern" and is_read:
                yield [b"psubscribe", value.encode()]
    elif name and is_read:
        yield [b"xrange", name, b"-", b"+"]
    elif name:
        verb = _VERBS.get(target.path.rpartition("/")[2])
        yield [verb, name, target.group, b""] if verb is not None else [b"xadd", name, b"*", b"", b""]


def _refused_all(user: User, mode: int) -> Refusal | None:
    """What it lacks for looking at, or changing, whatever there is."""
    words = [b"psubscribe", _ALL] if mode == READ else [b"publish", _ALL, b""]
    selectors = user.all_selectors
    if refusal_of(user, TABLE.commands[words[0]], words) is not None:
        return Refusal(CHANNEL, 1, _ALL)
    if not any(selector.all_channels or _ALL in selector.channels for selector in selectors):
        return Refusal(CHANNEL, 1, _ALL)
    if not any(selector.all_keys or selector.keys.get(_ALL, 0) & mode for selector in selectors):
        return Refusal(KEY, 1, _ALL)
    words = [b"xrange", _ALL, b"-", b"+"] if mode == READ else [b"xadd", _ALL, b"*", b"", b""]
    return Refusal(COMMAND, 0, words[0]) if refusal_of(user, TABLE.commands[words[0]], words) is not None else None


class Visit:
    """One request, as long as it is being answered. Its user may lose the right to it meanwhile; a token can't."""

    __slots__ = ("_receive", "_waiting", "is_over", "scope", "user_name")

    def __init__(self, user_name: bytes, scope: Scope) -> None:
        self.user_name = user_name
        self.scope = scope
        self.is_over = False
        self._waiting: asyncio.Task[Any] | None = None
        self._receive: Receive

    def end(self) -> None:
        """Its user may do this no more: to whoever answers it, its peer is gone."""
        self.is_over = True
        if self._waiting is not None:
            self._waiting.cancel()

    def receiving(self, receive: Receive) -> Receive:
        """As `receive`, until the visit ends."""
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
