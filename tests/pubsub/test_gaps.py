"""Law 8: what is lost is said, exactly, and replies are never lost."""

from __future__ import annotations

import pytest

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import OK, Map, Push, Reply
from rlite_pubsub.pubsub.backlog import Loss

SINCE = 1_700_000_000.123
SINCE_MS = 1_700_000_000_123


def said(protocol: int, *replies: Reply) -> bytes:
    return b"".join([encode(reply, protocol) for reply in replies])


@pytest.mark.parametrize("protocol", [2, 3])
def test_messages_of_every_kind_are_counted_by_channel(protocol: int) -> None:
    lost = said(
        protocol,
        Push([b"message", b"a", b"x"]),
        Push([b"pmessage", b"b*", b"b", b"x"]),
        Push([b"smessage", b"c", b"$-1\r\n"]),
        Push([b"message", b"a", b""]),
    )
    loss = Loss(SINCE)
    loss.add(lost, protocol)
    loss.add(said(protocol, Push([b"message", b"b", b"y"])), protocol)
    assert (loss.messages, loss.gaps) == (5, 3)
    assert loss.told(protocol) == said(
        protocol,
        Push([b"gap", b"a", 2, SINCE_MS]),
        Push([b"gap", b"b", 2, SINCE_MS]),
        Push([b"gap", b"c", 1, SINCE_MS]),
    )


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_between_the_messages_are_kept_in_order(protocol: int) -> None:
    replies: list[Reply] = [
        OK,
        Push([b"subscribe", b"a", 1]),
        [b"an", [b"array", 1]],
        None,
        Map({b"key": [b"value"]}.items()),
        b"message",
        Push([b"unsubscribe", None, 0]),
        3,
        b"bulk\r\n*3\r\n",
    ]
    lost = b""
    for reply in replies:
        lost += said(protocol, Push([b"message", b"a", b"x"]), reply)
    loss = Loss(SINCE)
    loss.add(lost, protocol)
    assert loss.messages == len(replies)
    gap = Push([b"gap", b"a", len(replies), SINCE_MS])
    assert loss.told(protocol) == said(protocol, *replies) + said(protocol, gap)


def test_reply_of_resp3_that_looks_like_a_message_is_a_reply() -> None:
    loss = Loss(SINCE)
    loss.add(said(3, [b"message", b"a", b"x"]), 3)
    assert (loss.messages, loss.told(3)) == (0, said(3, [b"message", b"a", b"x"]))


def test_size_grows_with_channels_and_replies_but_not_with_messages() -> None:
    loss = Loss(SINCE)
    loss.add(said(3, Push([b"message", b"a", b"x" * 1000])), 3)
    size = loss.size_bytes
    loss.add(said(3, Push([b"message", b"a", b"x" * 1000])) * 100, 3)
    assert loss.size_bytes == size
    loss.add(said(3, Push([b"message", b"another", b"x"])), 3)
    assert loss.size_bytes > size
    assert len(loss.told(3)) <= loss.size_bytes
