"""Commands on behalf of HTTP, and their replies as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.keyspace.topic.append_rules import TOO_LARGE
from rlite_pubsub.protocol import frames
from rlite_pubsub.protocol.replies import Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.waits.pause import Pause
    from rlite_pubsub.gateway.http.operation import Request
    from rlite_pubsub.gateway.session import Client, Deliver, HttpSession

_NAMES = frozenset(
    b"name dead-letter channels patterns shards channel_names pattern_names durable user lib addr consumer".split()
)
"""Fields of replies that are names, or lists of them."""


class _Answers:
    """The replies to this many requests, when they are complete."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: list[bytes] = []
        self.complete: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()

    def take(self, parts: list[bytes]) -> None:
        """As `Deliver`."""
        self._parts += parts
        if self.complete.done():
            return
        if not parts:
            detail = "The answer is larger than client-output-buffer-limit allows."
            self.complete.set_exception(Problem(503, "Answer too large", detail))
        elif len(self._parts) >= self._count:
            self.complete.set_result(self._parts)


class Asking:
    """All commands that requests ask for. Each request is a session of its own."""

    def __init__(
        self, session: Callable[[Client, Deliver], HttpSession], pause: Pause, turn_soon: Callable[[], None]
    ) -> None:
        self._session = session
        self._pause = pause
        self._turn_soon = turn_soon

    async def ask(self, request: Request, *words: bytes) -> Reply:
        """A command's reply. Raises Problem."""
        return frames.value(await self.asked(request, *words))

    async def asked(self, request: Request, *words: bytes) -> bytes:
        """Ask like `ask`; return the reply as RESP3 has it."""
        (frame,) = await self._replies(request, [words])
        return _granted(frame)

    async def ask_all(self, request: Request, commands: Sequence[tuple[bytes, ...]]) -> list[Reply]:
        """The replies to several commands, which are done in one turn. Raises Problem where one of them is refused."""
        return [frames.value(_granted(frame)) for frame in await self._replies(request, commands)]

    async def ask_each(self, request: Request, commands: Sequence[tuple[bytes, ...]]) -> list[Reply | Problem]:
        """Ask like `ask_all`, but a refusal does not spoil the rest."""
        replies = await self._replies(request, commands)
        return [_problem(frame) if frame[:1] == b"-" else frames.value(frame) for frame in replies]

    async def _replies(self, request: Request, commands: Sequence[tuple[bytes, ...]]) -> list[bytes]:
        if not commands:
            return []
        requests = [list(words) for words in commands]
        if self._pause.scope is not None and not all("readonly" in TABLE.resolve(each).flags for each in requests):
            raise Problem(503, "Paused", "Clients are paused (CLIENT PAUSE).")
        self._turn_soon()
        answers = _Answers(len(requests))
        session = self._session(request.client, answers.take)
        try:
            for each in requests:
                session.ask(each)
            return await answers.complete
        finally:
            session.close_now()


def plain(reply: Reply, *, is_name: bool = False) -> Any:
    """Return a reply as JSON has it; the keys of its maps in snake_case, as all of the API's."""
    if isinstance(reply, bytes):
        return event.text_of(reply) if is_name else event.value_of(reply)
    if isinstance(reply, dict):
        return {key_of(key): plain(value, is_name=key in _NAMES) for key, value in reply.items()}
    if isinstance(reply, list):
        return [plain(each, is_name=is_name) for each in reply]
    return reply


def key_of(field: Reply) -> str:
    """Return a field of a reply as JSON's keys are written."""
    return event.text_of(field).replace("-", "_") if isinstance(field, bytes) else str(field)


def _granted(frame: bytes) -> bytes:
    if frame[:1] == b"-":
        raise _problem(frame)
    return frame


def _problem(frame: bytes) -> Problem:
    text = frame[1:-2].decode(errors="replace")
    if text.startswith("WRONGTYPE"):
        return Problem(409, "Wrong type", text)
    if text.startswith(("ERR no such ", "NOGROUP", "ERR DB index")):
        return Problem(404, "Not found", text)
    if text.startswith("PARTIAL"):
        return Problem(503, "Sent to some", text)
    if text.startswith(TOO_LARGE.decode()):
        return Problem(413, "Too large", text)
    if text.startswith("OOM"):
        return Problem(507, "Store full", text)
    if text.startswith(("BUSY", "MISCONF", "ERR internal error")):
        return Problem(503, "Unavailable", text)
    if text.startswith("COLD"):
        return Problem(503, "Cold store unavailable", text)
    return Problem(400, "Refused", text)
