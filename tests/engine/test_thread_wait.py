"""A session that waits for a thread: it is answered, whatever becomes of what is done there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from patience import until
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.waits.thread_wait import ThreadWait

INTERNAL = b"-ERR internal error, see the server's log\r\n"


def fails(*_: object) -> bytes:
    raise RuntimeError("nobody has thought of it")


def answer(house: House, session: RecordedSession) -> bytes:
    """What it is told in the end."""
    heard = b""

    def has_come() -> bool:
        nonlocal heard
        house.timers.advance(1.0)
        heard += session.heard()
        return bool(heard)

    until(has_come, "an answer")
    return heard


@pytest.mark.parametrize(
    ("work", "finish", "told"),
    [
        (lambda: b"done", lambda result: b"+%b\r\n" % result, b"+done\r\n"),
        (fails, lambda result: b"+OK\r\n", INTERNAL),
        (lambda: b"done", fails, INTERNAL),
    ],
    ids=["neither fails", "the work fails", "the end fails"],
)
def test_it_is_told_and_goes_on(
    house: House, work: Callable[[], bytes], finish: Callable[[bytes], bytes], told: bytes
) -> None:
    session = house.session()
    session.blocked = ThreadWait(session, work, finish)
    assert session.do("PING") == b""
    assert answer(house, session) == told + b"+PONG\r\n"
