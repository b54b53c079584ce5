"""Commands on behalf of HTTP: the same handlers that a Redis client's commands go to, and their replies as JSON.

Law 5: what a command has changed is committed, and under `appendfsync always` on the disk, before it is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.posting import ANSWERED, Batch, PostRefused
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Encoded, Map, Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Instance
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

_NAMES = frozenset((b"name", b"dead-letter", b"channels", b"patterns", b"shards"))
"""Fields of replies that are names, or lists of them."""


class Asker(CommandSession):
    """A session that exists for one command."""

    def flush(self) -> None:
        self.said.clear()

    def abort(self) -> None:
        """There is no connection to close."""

    def close_now(self) -> None:
        """There is no connection to close."""

    def resume(self) -> None:
        """It never waits."""


class Asking:
    """All commands of one gateway."""

    def __init__(self, instance: Instance, keyspace: Keyspace, turn_soon: Callable[[], None]) -> None:
        self._instance = instance
        self._keyspace = keyspace
        self._turn_soon = turn_soon

    @property
    def is_guarded(self) -> bool:
        """Whether whoever comes has to say who it is."""
        return not Asker(self._instance).authenticated

    async def ask(self, *words: bytes) -> Reply:
        """A command's reply. Raises Problem."""
        (reply,) = await self.ask_all([words])
        return reply

    async def ask_all(self, requests: Sequence[tuple[bytes, ...]]) -> list[Reply]:
        """The replies to several commands, which are done in one turn. Raises Problem, at the first that is refused."""
        self._turn_soon()
        replies = [self._do(list(words)) for words in requests]
        if self._keyspace.turn.writes:
            await self._committed()
        return replies

    def _do(self, words: list[bytes]) -> Reply:
        instance = self._instance
        command = TABLE.resolve(words)
        if instance.pause.scope is not None and "readonly" not in command.flags:
            raise Problem(503, "Paused", "Clients are paused (CLIENT PAUSE).")
        assert command.handler is not None
        try:
            return command.handler(Asker(instance), words)
        except CommandError as refusal:
            raise _problem(refusal) from refusal
        except Exception as failure:
            told = self._keyspace.fail(failure)
            log.warning("%s failed for HTTP: %s", words[0].decode(errors="replace"), told)
            raise Problem(503, "Not done", str(told)) from failure

    async def _committed(self) -> None:
        done: asyncio.Future[Id] = asyncio.get_running_loop().create_future()
        batch = Batch(self._instance, [(entry_ids.MIN, done)])
        self._instance.unacknowledged.append((batch, ANSWERED))
        batch.send(ANSWERED)
        try:
            await done
        except PostRefused as refusal:
            raise Problem(507 if refusal.is_full else 503, "Not done", str(refusal)) from refusal


def plain(reply: Reply, *, is_name: bool = False) -> Any:
    """A reply as JSON has it."""
    if isinstance(reply, Encoded):
        return int(reply[1:])  # the only ones that are asked for are integers
    if isinstance(reply, bytes):
        return event.text_of(reply) if is_name else event.value_of(reply)
    if isinstance(reply, dict | Map):
        pairs = reply.items() if isinstance(reply, dict) else reply
        return {event.text_of(key): plain(value, is_name=key in _NAMES) for key, value in pairs}
    if isinstance(reply, list | tuple):
        return [plain(each, is_name=is_name) for each in reply]
    return reply


def _problem(refusal: CommandError) -> Problem:
    text = refusal.text.decode(errors="replace")
    if text.startswith("WRONGTYPE"):
        return Problem(409, "Something else", text)
    if text == "ERR no such key" or text.startswith("NOGROUP"):
        return Problem(404, "No such thing", text)
    if text.startswith(("OOM", "MISCONF")):
        return Problem(507 if text.startswith("OOM") else 503, "Not done", text)
    return Problem(400, "Refused", text)
