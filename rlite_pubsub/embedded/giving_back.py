"""Puts back what was popped for connections that were closed before their program had the reply.

It is done by a session of its own, with the requests that engine/waits/giving_back.py names, because another process
may be writing: then they stand in line as any request does. Law 8: what can't be put back is named in the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlite_pubsub.embedded.session import EmbeddedSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.embedded.handing import Handing
    from rlite_pubsub.embedded.session import Execute, TurnTaker
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.waits.giving_back import Taken

log = logging.getLogger("rlite_pubsub")


class GivingBack(EmbeddedSession):
    """One closed connection's. It ends by itself."""

    __slots__ = ("_done", "_taken")

    def __init__(
        self,
        engine: Engine,
        turns: TurnTaker,
        handing: Handing,
        execute: Execute,
        taken: list[Taken],
        done: Callable[[GivingBack], None],
    ) -> None:
        """`done` is called at its end."""
        super().__init__(engine, turns, handing, execute, [])
        self.gives_back = False
        self.restrict(None)
        self._taken = taken
        self._done = done

    def requests(self) -> list[list[bytes]]:
        """Return what it is to execute: the last that was popped first. A key that is gone gets its time of expiry
        again."""
        keyspace, requests = self.engine.keyspace, []
        for database, request, expires_ms in reversed(self._taken):
            requests += [[b"SELECT", b"%d" % database], request]
            if expires_ms and keyspace.find(database, request[1]) is None:
                requests.append([b"PEXPIREAT", request[1], b"%d" % expires_ms])
        return requests

    def rouse(self) -> None:
        """Something is answered."""
        replies = b"".join(self.outbox.take(self))
        if self.is_owed_an_answer and self.is_open:
            return
        lines = (b"\r\n" + replies).split(b"\r\n-")[1:]
        if lines or self.is_owed_an_answer:
            names = b", ".join(sorted({request[1] for _, request, _ in self._taken})).decode(errors="replace")
            why = lines[0].partition(b"\r\n")[0].decode(errors="replace") if lines else "the store was closed"
            log.warning("What was popped for an interrupted read can't be put back to %s: %s", names, why)
        if self.is_open:
            self._done(self)
