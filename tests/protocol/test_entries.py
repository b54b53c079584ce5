"""Entries in wire format are cut apart as hiredis reads them, or not at all."""

from __future__ import annotations

from typing import Any

import hiredis
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.entries import cut_entries

words = st.lists(st.binary(max_size=12), min_size=1, max_size=3).map(lambda found: found * 2)
ids = st.one_of(
    st.just(b"*"),
    st.builds(lambda ms, seq: b"%d-%d" % (ms, seq), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    st.text("0123456789-", max_size=8).map(str.encode),
)


def packed(found: list[tuple[bytes, list[bytes]]]) -> bytes:
    return b"".join(b"*2\r\n$%d\r\n%b\r\n%b" % (len(id), id, bulk_array(row)) for id, row in found)


@given(st.lists(st.tuples(ids, words), max_size=5))
def test_entries_come_out_as_they_went_in(found: list[tuple[bytes, list[bytes]]]) -> None:
    cut = cut_entries(packed(found))
    assert cut is not None
    assert [(each.id, each.body, each.size_bytes) for each in cut] == [
        (id, bulk_array(row), sum(map(len, row))) for id, row in found
    ]
    for each in cut:
        if each.parts is not None:
            assert b"%d-%d" % each.parts == each.id
        elif each.id.count(b"-") == 1:  # one that is longer, or not written as ids are
            parts = each.id.split(b"-")
            assert any(len(part) > 17 or not part or (part[0] == 0x30 and part != b"0") for part in parts)


@given(st.lists(st.tuples(ids, words), min_size=1, max_size=3), st.data())
def test_bytes_that_are_changed_are_refused_or_read_as_hiredis_reads_them(
    found: list[tuple[bytes, list[bytes]]], data: st.DataObject
) -> None:
    wire = packed(found)
    at = data.draw(st.integers(0, len(wire) - 1))
    changed = wire[:at] + data.draw(st.binary(max_size=2)) + wire[at + data.draw(st.integers(0, 2)) :]
    cut = cut_entries(changed)
    if cut is None or not changed:
        return
    reader = hiredis.Reader(notEnoughData=None)
    reader.feed(changed)
    read: list[Any] = []
    while (one := reader.gets()) is not None:
        read.append(one)
    assert [[each.id, each.body] for each in cut] == [[id, bulk_array(row)] for id, row in read]
    assert not reader.has_data() or sum(map(len, changed.split())) == 0
