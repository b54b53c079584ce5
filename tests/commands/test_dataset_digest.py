"""DEBUG DIGEST: the numbers that redis-server 7.0.15 computes of the same keys."""

from __future__ import annotations

import pytest
from recorded_session import RecordedSession

pytestmark = pytest.mark.settings(enable_debug_command="yes")

NOTHING = b"+" + b"0" * 40 + b"\r\n"


def digest(session: RecordedSession) -> bytes:
    return session.do("DEBUG", "DIGEST")


def test_no_keys_are_all_zeros(session: RecordedSession) -> None:
    assert digest(session) == NOTHING
    assert session.do("DEBUG", "DIGEST-VALUE", "none") == b"*1\r\n" + NOTHING


def test_the_order_in_which_keys_came_does_not_matter(session: RecordedSession) -> None:
    session.do("MSET", "a", "1", "b", "2")
    first = digest(session)
    session.do("FLUSHALL")
    session.do("MSET", "b", "2", "a", "1")
    assert digest(session) == first != NOTHING


@pytest.mark.parametrize(
    "words", [["SET", "a", "2"], ["EXPIRE", "a", "100"], ["RENAME", "a", "c"], ["MOVE", "a", "1"], ["SET", "c", "1"]]
)
def test_every_difference_shows(session: RecordedSession, words: list[str]) -> None:
    session.do("MSET", "a", "1", "b", "1")
    before = digest(session)
    session.do(*words)
    assert digest(session) != before


def test_it_is_the_digest_of_redis(session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PXAT", "4000000000000")
    session.do("SELECT", "3")
    session.do("XADD", "s", "1-1", "f\r\n$3", "v")
    session.do("XADD", "s", "2-0", "", "\0")
    assert digest(session) == b"+0567b2fb9fed92b09d64e01318b32fe43ac49f36\r\n"
