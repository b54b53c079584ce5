"""A session that came over HTTP: its requests are executed as anybody's are, and so MONITOR, the slow log and all that
counts see them.

Laws kept here:
 5. what it is answered is handed over when the turn is committed and, under `appendfsync always`, on the disk; where
    that fails, it is an error by then.
 7. what it is answered obeys `client-output-buffer-limit`, as all that is said does: beyond it the session is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rlite_pubsub.engine.dispatch import call, execute
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.pubsub.outbox import TakenOutbox

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine

Client: TypeAlias = "tuple[str, int] | None"
"""The peer's address and port, where they are known."""
Deliver: TypeAlias = "Callable[[list[bytes]], None]"
"""Called once a turn with the replies that are final, in the order of the requests; with none when a limit has closed
the session."""


def address_of(client: Client) -> str:
    """Return its address as CLIENT LIST, MONITOR and the log show it."""
    host, port = client or ("?", 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class HttpSession(CommandSession):
    """A client that guard.py has let in, which knows what its user may do: no rule is checked again."""

    __slots__ = ("_client", "_deliver", "_requests")

    outbox: TakenOutbox

    def __init__(self, engine: Engine, client: Client, deliver: Deliver) -> None:
        super().__init__(engine, TakenOutbox(engine.pressure))
        self._client = client
        self._deliver = deliver
        self._requests: deque[list[bytes]] = deque()  # that wait for `resume`
        self.authenticated = self.logged_in = True
        self.limits = None
        self.protocol = 3
        self.look_at_itself()

    def ask(self, request: list[bytes]) -> None:
        """Execute a request, or have it wait behind those that wait."""
        if self._requests or self.engine.pause.scope is not None:
            self._requests.append(request)
            self.resume()
        elif not execute(self, request):
            self._requests.append(request)

    def ask_for(self, client: Client, request: list[bytes]) -> None:
        """Ask like `ask`, for one of several clients that share the session."""
        self._client = client
        self.ask(request)

    def resume(self) -> None:
        requests = self._requests
        while requests and self.blocked is None:
            if self.engine.pause.scope is not None:  # what comes here then reads only, and is answered all the same
                call(self, TABLE.resolve(requests[0]), requests[0])
            elif not execute(self, requests[0]):
                return
            requests.popleft()

    def rouse(self) -> None:
        parts: list[bytes] = []
        while more := self.outbox.take(self):
            parts += more
        self._deliver(parts)

    @property
    def address(self) -> str:
        return address_of(self._client)

    def close_now(self) -> None:
        """Leave nothing behind; there is no connection to close."""
        self.closing = True
        self.outbox.end()
        if self._requests:  # it waits for something
            self._requests.clear()
            self.engine.forget(self)
