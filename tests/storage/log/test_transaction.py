"""A transaction over own rows, three windows and LMDB answers as one sorted dict would."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import pytest
from c_module import compiled
from hypothesis import given, settings
from hypothesis import strategies as st

import rlite_pubsub.storage.window as package
from rlite_pubsub.storage.log.transaction import Layer, LogCursor, LogTransaction, Rows, Snapshot
from rlite_pubsub.storage.window import window as window_module
from rlite_pubsub.storage.window.plain import PlainView, PlainWindow
from rlite_pubsub.storage.window.window import Segment, make_index, make_log

LOG_BYTES = 1 << 20
keys = st.one_of(
    st.sampled_from([b"t1", b"t2", b"t3", b"t\xff", b"\xff\xff", b"u", b"s9"]),
    st.tuples(st.sampled_from([b"s", b"t", b"u", b"\xff"]), st.binary(max_size=3)).map(b"".join),
)
rows = st.dictionaries(keys, st.one_of(st.none(), st.binary(max_size=6)), max_size=12)


class Lmdb:
    """An environment of LMDB, with rows."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self.environment = lmdb.Environment(str(folder / "data.mdb"), subdir=False, map_size=1 << 20)
        with self.environment.begin(write=True) as txn:
            for key, value in rows.items():
                if value is not None:
                    txn.put(key, value)


def window_of(folder: Path, number: int, kind: str, changes: list[Rows]) -> tuple[Any, list[int]]:
    segment = Segment(number, 0, bytes(16))
    log, index = make_log(folder, segment), make_index(folder, segment, LOG_BYTES)
    module = window_module._window or compiled(Path(package.__path__[0]) / "_window.c")
    window = (module.Window if kind == "c" else PlainWindow)(log, index)
    for change in changes:
        assert window.append(change, number, 0)
    return window, [log, index]


def view_of(window: Any, database: int) -> Any:
    module = window_module._window or compiled(Path(package.__path__[0]) / "_window.c")
    return PlainView(window, database) if isinstance(window, PlainWindow) else module.View(window, database)


@contextmanager
def transaction_over(
    kind: str, old: Rows, frozen: list[Rows] | None, active: list[Rows], unseen: list[Rows]
) -> Iterator[tuple[LogTransaction, dict[bytes, bytes]]]:
    """A transaction, and what it sees. What is committed after its snapshot it does not see."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        below = Lmdb(folder, old)
        layers, descriptors = list[Snapshot](), list[int]()
        for number, changes in enumerate([active] if frozen is None else [active, frozen[:1], frozen[1:]]):
            window, opened = window_of(folder, number, kind, changes)
            layers.append((Layer(window, view_of), window.tip))
            descriptors += opened
        layers[1:] = layers[:0:-1]  # the older one last
        for change in unseen:
            layers[0][0].window.append(change, 0, 0)
        seen = dict[bytes, bytes]()
        for change in [old, *(frozen or []), *active]:
            apply(seen, change)
        with below.environment.begin() as txn:
            yield LogTransaction(5, layers, txn), seen
        for layer, _ in layers:
            layer.close()
        for descriptor in descriptors:
            os.close(descriptor)
        below.environment.close()


def apply(state: dict[bytes, bytes], change: Rows) -> None:
    for key, value in change.items():
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value


layering = given(
    kind=st.sampled_from(["c", "plain"]),
    old=rows,
    frozen=st.one_of(st.none(), st.lists(rows, max_size=3)),
    active=st.lists(rows, max_size=3),
    unseen=st.lists(rows, max_size=2),
    own=rows,
    data=st.data(),
)
often = settings(max_examples=150, deadline=None)


@layering
@often
def test_row_is_what_the_newest_source_says(
    kind: str, old: Rows, frozen: list[Rows] | None, active: list[Rows], unseen: list[Rows], own: Rows, data: Any
) -> None:
    with transaction_over(kind, old, frozen, active, unseen) as (txn, state):
        before = dict(state)
        for key, value in own.items():
            if value is None:
                assert txn.delete(key) == (key in state)
                state.pop(key, None)
            else:
                assert txn.put(key, value)
                state[key] = value
        for key in {*old, *own, *state, *(key for change in [*(frozen or []), *active, *unseen] for key in change)}:
            assert txn.get(key) == state.get(key) and txn.committed(key) == before.get(key)


@layering
@often
def test_cursor_goes_where_a_cursor_of_lmdb_would(
    kind: str, old: Rows, frozen: list[Rows] | None, active: list[Rows], unseen: list[Rows], own: Rows, data: Any
) -> None:
    with transaction_over(kind, old, frozen, active, unseen) as (txn, state):
        txn.change(dict(own))
        apply(state, own)
        cursor = txn.cursor()
        database = data.draw(st.sampled_from([b"s", b"t", b"u", b"\xff"]))
        at = min((key for key in state if key.startswith(database)), default=None)
        assert cursor.set_range(database) == (at is not None)
        for _ in range(12):
            known = sorted(key for key in state if key.startswith(database))
            step = data.draw(st.sampled_from(["set_range", "next", "prev", "first", "last", "put", "delete", "here"]))
            if step == "set_range":
                wanted = database + data.draw(st.binary(max_size=3))
                at = min((key for key in known if key >= wanted), default=None)
                assert cursor.set_range(wanted) == (at is not None)
            elif step in ("first", "last"):
                at = (known or [None])[0 if step == "first" else -1]
                assert getattr(cursor, step)() == (at is not None)
            elif step == "next" and at is not None:
                at = min((key for key in known if key > at), default=None)
                assert cursor.next() == (at is not None)
            elif step == "prev" and at is not None:
                at = max((key for key in known if key < at), default=None)
                assert cursor.prev() == (at is not None)
            elif step in ("put", "delete"):
                key = database + data.draw(st.binary(max_size=3))
                if step == "put":
                    txn.put(key, b"put")
                    state[key] = b"put"
                elif key != at:
                    txn.delete(key)
                    state.pop(key, None)
            elif step == "here" and at is not None and at in state:
                del state[at]
                at = min((key for key in state if key > at and key.startswith(database)), default=None)
                assert cursor.delete() == (at is not None)
            assert cursor.item() == ((b"", b"") if at is None else (at, state[at]))


@layering
@often
def test_walks_have_every_row_once_in_order(
    kind: str, old: Rows, frozen: list[Rows] | None, active: list[Rows], unseen: list[Rows], own: Rows, data: Any
) -> None:
    with transaction_over(kind, old, frozen, active, unseen) as (txn, state):
        txn.change(dict(own))
        apply(state, own)
        assert list(txn.cursor().iternext()) == sorted(state.items())
        assert list(txn.cursor().iterprev()) == sorted(state.items(), reverse=True)
        of_t = sorted(item for item in state.items() if item[0].startswith(b"t"))
        cursor = put_at(txn.cursor(), b"t")
        assert list(cursor.iternext(values=False)) == [key for key, _ in of_t]
        assert not cursor.key() and (not of_t or cursor.last() and cursor.key() == of_t[-1][0])


def put_at(cursor: LogCursor, key: bytes) -> LogCursor:
    if not cursor.set_range(key):
        assert cursor.item() == (b"", b"")
    return cursor


@pytest.mark.parametrize("kind", ["c", "plain"])
def test_rows_that_are_removed_while_they_are_walked_are_not_met(kind: str) -> None:
    old: Rows = {b"t%d" % number: b"old" for number in range(10)}
    with transaction_over(kind, old, [{b"t3": None}], [{b"t4": b"new"}], []) as (txn, _):
        cursor = txn.cursor()
        met = list[tuple[bytes, bytes]]()
        found = cursor.set_range(b"t")
        while found:
            met.append(cursor.item())
            txn.delete(b"t6")
            found = cursor.delete() if cursor.key() == b"t4" else cursor.next()
        assert [key for key, _ in met] == [b"t0", b"t1", b"t2", b"t4", b"t5", b"t7", b"t8", b"t9"]
        assert dict(met)[b"t4"] == b"new" and txn.get(b"t4") is None and txn.get(b"t6") is None
