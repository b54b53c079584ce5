"""Three ways to ask: as bytes on a socket, by redis-py, and in a program without a server."""

from __future__ import annotations

import http.client
import json
import random
import socket
from pathlib import Path
from typing import Any, Protocol

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import rlite_pubsub
from rlite_pubsub.storage.topics import uuid6
from tests.history.requests import PASSWORD
from tests.history.words import Words
from tests.patience import PATIENCE_S

SHORT_PATIENCE_S = 0.3
"""Who does not wait longer gives up, and what it has asked for may still happen."""


class Refused(Exception):
    """An error was the answer."""


class Lost(Exception):
    """There was no answer."""


class Line(Protocol):
    def ask(self, commands: list[Words]) -> list[Any]:
        """The replies; several commands are a transaction. Raises Refused, or Lost."""

    def close(self) -> None: ...


class SocketLine:
    """Bytes on a socket."""

    def __init__(self, address: Path, dice: random.Random, user: str | None = None) -> None:
        """Raises Lost if nobody answers there: then nothing was asked for."""
        where: Any = ("127.0.0.1", int(address.read_text()))
        family = socket.AF_INET
        if dice.random() < 0.5:
            where, family = str(address.with_suffix(".sock")), socket.AF_UNIX
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.settimeout(dice.choice([SHORT_PATIENCE_S, PATIENCE_S]))
        self._reader = hiredis.Reader()
        try:
            self._socket.connect(where)
            self.ask([("PING",)] if user is None else [("AUTH", user, PASSWORD)])
        except (OSError, Lost) as failure:
            self._socket.close()
            raise Lost(str(failure)) from failure

    def ask(self, commands: list[Words]) -> list[Any]:
        said = [("MULTI",), *commands, ("EXEC",)] if len(commands) > 1 else commands
        try:
            self._socket.sendall(b"".join(hiredis.pack_command(words) for words in said))
            replies = [self._reply() for _ in said]
        except OSError as failure:
            raise Lost(str(failure)) from failure
        reply = replies[-1]
        for one in [*replies, *(reply if isinstance(reply, list) else ())]:
            if isinstance(one, hiredis.ReplyError):
                raise Refused(str(one))
        return reply if len(commands) > 1 else replies

    def close(self) -> None:
        self._socket.close()

    def _reply(self) -> Any:
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("closed by the server")
            self._reader.feed(data)
        return reply


class LibraryLine:
    """redis-py, or its embedded twin, with replies as they come."""

    def __init__(self, client: Any, *, may_break: bool) -> None:
        """`may_break`: there is a server, which may die. Raises Lost if it is not there."""
        self._client = client
        self._may_break = may_break
        client.response_callbacks.clear()
        if may_break:
            self._guarded(client.execute_command, "PING")

    @classmethod
    def to_server(cls, address: Path, user: str | None = None) -> LibraryLine:
        once = Retry(NoBackoff(), 0)  # type: ignore[no-untyped-call]
        port, who = int(address.read_text()), _who(user)
        client = redis.Redis(port=port, protocol=2, socket_timeout=PATIENCE_S, retry=once, **who)
        return cls(client, may_break=True)

    @classmethod
    def to_folder(cls, folder: Path, user: str | None = None) -> LibraryLine:
        return cls(rlite_pubsub.Redis(folder, protocol=2, **_who(user)), may_break=False)

    def ask(self, commands: list[Words]) -> list[Any]:
        if len(commands) == 1:
            return [self._guarded(self._client.execute_command, *commands[0])]
        with self._client.pipeline(transaction=True) as pipe:
            for words in commands:
                pipe.execute_command(*words)
            replies: list[Any] = self._guarded(pipe.execute)
            return replies

    def close(self) -> None:
        self._client.close()

    def _guarded(self, ask: Any, *words: str) -> Any:
        try:
            return ask(*words)
        except (redis.ConnectionError, redis.TimeoutError) as failure:
            if not self._may_break:
                raise
            self._client.connection_pool.disconnect()
            raise Lost(str(failure)) from failure
        except redis.RedisError as failure:
            raise Refused(f"{failure}") from failure


class EventLine:
    """Events are posted over HTTP."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def ask(self, commands: list[Words]) -> list[Any]:
        ((type, body),) = commands
        try:
            self._connection.request("POST", f"/api/events?type={type}", body)
            response = self._connection.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as failure:
            raise Lost(repr(failure)) from failure
        if response.status != 200:
            raise Refused(said.decode())
        return [entry_id(json.loads(said)["id"])]

    def close(self) -> None:
        self._connection.close()


def entry_id(uuid: str) -> str:
    """What the entry of an event is called."""
    id = uuid6.parse(uuid)
    assert id is not None, uuid
    ms, sequence = id
    return f"{ms}-{sequence}"


def _who(user: str | None) -> dict[str, Any]:
    return {} if user is None else {"username": user, "password": PASSWORD}
