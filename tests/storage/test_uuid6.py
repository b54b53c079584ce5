from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.storage.topics import uuid6
from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id

NUMBERS = st.one_of(st.integers(0, PART_MAX), st.integers(0, 1000), st.integers(PART_MAX - 1000, PART_MAX))
IDS = st.tuples(st.one_of(st.integers(0, uuid6.MAX_MS), st.integers(0, 10), st.just(uuid6.MAX_MS)), NUMBERS)


@given(IDS)
def test_every_id_has_a_uuid_of_version_6_and_comes_back_from_it(entry_id: Id) -> None:
    text = uuid6.text(entry_id).decode()
    assert UUID(text).version == 6
    assert uuid6.parse(text) == uuid6.parse(text.upper()) == entry_id


@given(IDS, IDS)
def test_uuids_sort_as_ids_do_as_text_and_as_bytes(one: Id, other: Id) -> None:
    texts = uuid6.text(one), uuid6.text(other)
    assert (texts[0] < texts[1]) == (one < other)
    assert (UUID(texts[0].decode()).bytes < UUID(texts[1].decode()).bytes) == (one < other)


def test_a_uuid_tells_the_time_of_its_id() -> None:
    when = datetime(2026, 11, 18, 12, tzinfo=UTC)
    uuid = UUID(uuid6.text((int(when.timestamp() * 1000), 7)).decode())
    ticks = uuid.int >> 80 << 12 | uuid.int >> 64 & 0xFFF
    assert (ticks - 0x01B21DD213814000) / 10_000_000 == when.timestamp()


@given(st.tuples(st.integers(uuid6.MAX_MS + 1, PART_MAX), NUMBERS))
def test_an_id_beyond_the_years_of_uuids_is_told_as_it_is_and_read(entry_id: Id) -> None:
    assert uuid6.text(entry_id) == b"%d-%d" % entry_id
    assert uuid6.parse(f"{entry_id[0]}-{entry_id[1]}") == entry_id


@given(st.text() | st.uuids().map(str))
def test_what_is_no_id_of_ours_is_unknown_and_never_another_ones(word: str) -> None:
    found = uuid6.parse(word)
    assert found is None or uuid6.text(found).decode() == word.lower() or word.count("-") == 1


def test_uuids_of_others_are_unknown() -> None:
    assert uuid6.parse(str(uuid4())) is None
    assert uuid6.parse("1ec9414c-232a-6b00-b3c8-9f6bdeced846") is None  # RFC 9562's example of version 6
    assert uuid6.parse(uuid6.text((1, 2)).decode() + "\n") is None
