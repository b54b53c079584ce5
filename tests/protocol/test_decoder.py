"""Replies that are bytes already become what they are made of."""

from __future__ import annotations

import pytest

from rlite_pubsub.protocol.decoder import BigNumber, decode
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Error, Map, Push, Reply, SetReply, Status, Verbatim

REPLIES: list[Reply] = [
    b"text\r\n",
    b"",
    -7,
    None,
    Status(b"OK"),
    Error(b"ERR no"),
    True,
    False,
    0.5,
    [b"a", [1, None], []],
    SetReply([b"a", 1]),
    Push([b"message", b"x"]),
    Map([(b"a", [1]), (b"b", Map([]))]),
    Verbatim(b"text", b"mkd"),
]


@pytest.mark.parametrize("reply", REPLIES, ids=repr)
def test_what_is_encoded_comes_back_with_its_type(reply: Reply) -> None:
    decoded = decode(encode(reply, 3))
    assert decoded == reply and type(decoded) is type(reply)
    assert getattr(decoded, "format", None) == getattr(reply, "format", None)


def test_an_attribute_is_left_out() -> None:
    assert decode(b"|1\r\n+k\r\n*2\r\n:1\r\n:2\r\n%1\r\n+k\r\n(123\r\n") == Map([(Status(b"k"), BigNumber(b"123"))])
