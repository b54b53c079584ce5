"""Members that are drawn at random."""

from __future__ import annotations

import pytest
from parsed_session import ParsedSession


@pytest.mark.parametrize("words", [("SRANDMEMBER", "s"), ("HRANDFIELD", "h"), ("ZRANDMEMBER", "z")])
def test_nobody_fills_the_memory_by_drawing(client: ParsedSession, words: tuple[str, str]) -> None:
    client.do("SADD", "s", "a", "b")
    client.do("HSET", "h", "a", "1", "b", "2")
    client.do("ZADD", "z", "1", "a", "2", "b")
    assert str(client.do(*words, "-9223372036854775807")) == "ERR value is out of range"
    assert len(client.do(*words, "-1000")) == 1000
    assert len(client.do(*words, "9223372036854775807")) == 2
