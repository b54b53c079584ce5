"""Topics and their images: what Redis knows of a stream goes through, in the form in which it counts."""

from __future__ import annotations

import pytest
from recorded_session import RecordedSession

from rlite_pubsub.engine import payloads
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.rdb.stream import ConsumerImage, GroupImage, StreamImage


@pytest.fixture
def keyspace(session: RecordedSession) -> Keyspace:
    assert session.engine.keyspace is not None
    return session.engine.keyspace


def image_of(keyspace: Keyspace, key: bytes) -> StreamImage:
    topic = keyspace.find(0, key)
    assert isinstance(topic, Topic)
    image = payloads.image_of(topic)
    return image._replace(entries=list(image.entries))


GROUP = GroupImage(
    b"g",
    (3, 0),
    2,
    {(1, 0): (7000, 1), (2, 0): (5000, 9), (9, 9): (5000, 9)},
    [ConsumerImage(b"a", 8000, [(1, 0), (9, 9)]), ConsumerImage(b"b", 6000, [(2, 0)])],
)
WHOLE = StreamImage([((1, 0), [b"a", b"1"]), ((3, 0), [b"a", b"1"])], 2, (4, 0), (1, 0), (2, 0), 3, [GROUP])


def test_a_topic_that_was_built_has_its_image(session: RecordedSession, keyspace: Keyspace) -> None:
    payloads.topic_of(keyspace, 0, b"k", WHOLE)
    assert image_of(keyspace, b"k") == WHOLE
    session.engine.commit()
    keyspace.stored.forget()
    assert image_of(keyspace, b"k") == WHOLE


def test_what_groups_of_redis_6_have_read_is_estimated(keyspace: Keyspace) -> None:
    groups = [GroupImage(b"%d" % ms, (ms, 0), None, {}, []) for ms in (0, 1, 2, 3, 5)]
    old = WHOLE._replace(groups=groups, last_id=(3, 0), max_deleted_id=(0, 0), entries_added=2, is_counted=False)
    payloads.topic_of(keyspace, 0, b"k", old)
    assert [group.entries_read for group in image_of(keyspace, b"k").groups] == [0, 1, None, 2, None]


def test_what_is_pending_counts_for_group_and_consumers(session: RecordedSession, keyspace: Keyspace) -> None:
    payloads.topic_of(keyspace, 0, b"k", WHOLE)
    assert session.do("XPENDING", "k", "g").replace(b"\r\n", b" ") == (
        b"*4 :3 $3 1-0 $3 9-9 *2 *2 $1 a $1 2 *2 $1 b $1 1 "
    )
