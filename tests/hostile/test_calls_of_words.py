"""What each further word of a request costs, counted in calls: of Python's functions, and of C's by Python's.

Times differ from machine to machine, and these figures do not. The bounds are what the commands need and a little more:
a look at the store, or a second pass over all words, that somebody adds for each word is seen here."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from growth import SETUP, Words, requests_of
from recorded_session import House

pytestmark = pytest.mark.sources("counts the calls of Python's functions")

FEW, MANY = 1500, 3000
MOST = {
    "CLIENT KILL": 9,
    "HELLO": 9,
    "CONFIG GET": 3,
    "CONFIG SET": 6,
    "CONFIG SET same": 3,
    "COMMAND INFO": 8.5,
    "COMMAND DOCS": 5.5,
    "COMMAND INFO get": 1,
    "COMMAND GETKEYSANDFLAGS": 5,
    "SUBSCRIBE": 16,
    "SSUBSCRIBE": 16,
    "UNSUBSCRIBE none": 11,
    "SUBSCRIBE n, UNSUBSCRIBE": 29,
    "MGET": 17,
    "EXISTS": 13,
    "DEL": 15,
    "MSET": 51,
    "MSETNX": 66,
    "SADD": 5,
    "SADD numbers": 5,
    "ZADD": 40,
    "GEOADD": 53,
    "XREAD": 30,
    "XREAD BLOCK": 36,
    "BLPOP": 14,
    "XCLAIM": 9,
    "BITFIELD": 37,
    "SINTER": 14,
    "SUNION": 14,
    "LMPOP": 17,
    "ZMPOP": 18,
    "ZUNION": 16,
    "ACL SETUSER selectors": 8,
}


def encoded(words: Words) -> list[bytes]:
    return [word if isinstance(word, bytes) else str(word).encode() for word in words]


def calls(name: str, words: int) -> int:
    """How many calls the command makes with this many words."""
    house = House()
    session = house.session()
    for request in SETUP:
        session.do(*encoded(request))
    requests = [encoded(request) for request in requests_of(name, words)]
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" or event == "c_call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for request in requests:
            session.do(*request)
    finally:
        sys.setprofile(before)
    session.close_now()
    house.demolish()
    return count


@pytest.mark.parametrize("name", MOST)
def test_a_further_word_costs_few_calls(name: str) -> None:
    calls(name, FEW)  # what is found out once for all
    assert (calls(name, MANY) - calls(name, FEW)) / (MANY - FEW) <= MOST[name]
