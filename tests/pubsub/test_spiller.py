"""The spiller: tails go to mailboxes, shared where they are the same, and come back in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from mailbox_sizes import backlog_of

from rlite_pubsub.pubsub.backlog import Backlog
from rlite_pubsub.pubsub.spiller import FORGET_PAGES_BYTES, MailboxSpillStore, Spiller
from rlite_pubsub.storage.errors import StoreError, StoreFull
from rlite_pubsub.storage.mail import messages
from rlite_pubsub.storage.store import Store

SUBSCRIBER = 7


@pytest.fixture
def spiller(store: Store) -> Spiller:
    made = Spiller(MailboxSpillStore(store, SUBSCRIBER))
    made.threshold_bytes = 10
    return made


def append(spiller: Spiller, backlogs: Sequence[Backlog], *parts: bytes) -> None:
    """The same bytes for each, as a route hands them out."""
    for part in parts:
        for backlog in backlogs:
            spiller.append(backlog, part, 1)


def drained(spiller: Spiller, backlog: Backlog) -> bytes:
    read = b""
    while backlog:
        if not backlog.head:
            spiller.refill(backlog)
        read += b"".join(map(bytes, backlog.head))
        backlog.written(backlog.head_bytes)
    return read


def stored(store: Store) -> tuple[int, int]:
    """(letters in mailboxes, messages)."""

    def count(txn: object) -> tuple[int, int]:
        return backlog_of(txn, SUBSCRIBER).messages, messages.count(txn)  # type: ignore[arg-type]

    return store.live.read(count)


def test_short_tails_stay_in_memory(spiller: Spiller, store: Store) -> None:
    backlog = spiller.begin(1, 0.0)
    append(spiller, [backlog], b"x" * 10, b"y" * 10)
    assert not spiller.due
    assert stored(store) == (0, 0)


def test_tail_past_the_threshold_is_due_and_spilled_with_all_other_tails(spiller: Spiller, store: Store) -> None:
    long, short = spiller.begin(1, 0.0), spiller.begin(2, 0.0)
    append(spiller, [long, short], b"x" * 10)
    append(spiller, [long], b"y" * 11)
    append(spiller, [short], b"z")
    assert spiller.due
    spiller.spill()
    assert not spiller.due
    assert stored(store) == (2, 2)
    assert (long.disk_bytes, long.tail_bytes, short.disk_bytes) == (11, 0, 1)
    assert spiller.disk_bytes == 12
    assert drained(spiller, long) == b"x" * 10 + b"y" * 11
    assert drained(spiller, short) == b"x" * 10 + b"z"


def test_same_tails_are_stored_once(spiller: Spiller, store: Store) -> None:
    backlogs = [spiller.begin(number, 0.0) for number in range(1, 6)]
    append(spiller, backlogs, b"x" * 10)
    for number in range(3):
        append(spiller, backlogs, b"%d" % number + b"y" * 10)
        spiller.spill()
    assert stored(store) == (15, 3)
    expected = b"x" * 10 + b"".join(b"%d" % number + b"y" * 10 for number in range(3))
    assert [drained(spiller, backlog) for backlog in backlogs] == [expected] * 5
    assert stored(store) == (0, 0)


def test_equal_tails_of_different_origin_are_not_confused(spiller: Spiller) -> None:
    first, second = spiller.begin(1, 0.0), spiller.begin(2, 0.0)
    append(spiller, [first], b"x" * 10, bytes(bytearray(b"a" * 11)))
    append(spiller, [second], b"x" * 10, bytes(bytearray(b"a" * 11)), b"more")
    spiller.spill()
    assert drained(spiller, first) == b"x" * 10 + b"a" * 11
    assert drained(spiller, second) == b"x" * 10 + b"a" * 11 + b"more"


def test_framing_comes_back_with_the_bytes(spiller: Spiller) -> None:
    backlog = spiller.begin(1, 0.0)
    append(spiller, [backlog], b"x" * 10, b"y" * 6, b"z" * 6)
    spiller.spill()
    assert (backlog.disk_bytes, backlog.disk_framing_bytes) == (12, 2)
    drained(spiller, backlog)
    assert (backlog.disk_bytes, backlog.disk_framing_bytes) == (0, 0)


def test_end_of_a_session_drops_its_mailbox_and_nobody_elses(spiller: Spiller, store: Store) -> None:
    first, second = spiller.begin(1, 0.0), spiller.begin(2, 0.0)
    append(spiller, [first, second], b"x" * 10, b"y" * 11)
    spiller.spill()
    spiller.end(first)
    assert stored(store) == (1, 1)
    assert drained(spiller, second) == b"x" * 10 + b"y" * 11
    spiller.end(second)
    assert stored(store) == (0, 0)


def test_failed_spill_moves_nothing_and_can_be_repeated(spiller: Spiller, monkeypatch: pytest.MonkeyPatch) -> None:
    backlogs = [spiller.begin(number, 0.0) for number in (1, 2)]
    append(spiller, backlogs, b"x" * 10, b"y" * 11)

    def full(blobs: object) -> None:
        raise StoreFull(Path("store"), 1)

    with monkeypatch.context() as patched:
        patched.setattr(spiller.store, "push", full)
        with pytest.raises(StoreError):
            spiller.spill()
    assert [backlog.tail_bytes for backlog in backlogs] == [11, 11]
    assert spiller.disk_bytes == 0
    spiller.spill()
    assert [drained(spiller, backlog) for backlog in backlogs] == [b"x" * 10 + b"y" * 11] * 2


def test_mailbox_that_could_not_be_removed_is_removed_later(
    spiller: Spiller, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlogs = [spiller.begin(number, 0.0) for number in (1, 2)]
    append(spiller, backlogs, b"x" * 10, b"y" * 11)
    spiller.spill()

    def full(session_id: int) -> None:
        raise StoreFull(Path("store"), 1)

    with monkeypatch.context() as patched:
        patched.setattr(spiller.store, "drop", full)
        for backlog in backlogs:
            with pytest.raises(StoreError):
                spiller.end(backlog)
    assert stored(store) == (2, 1)
    spiller.settle()
    assert stored(store) == (0, 0)


def test_pages_read_back_are_let_go_now_and_then(
    spiller: Spiller, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlog = spiller.begin(1, 0.0)
    append(spiller, [backlog], b"x" * 10)
    for _ in range(40):
        append(spiller, [backlog], b"y" * (1 << 20))
        spiller.spill()
    let_go: list[int] = []
    forget_pages = store.live.forget_pages

    def forget() -> None:
        let_go.append(backlog.disk_bytes)
        forget_pages()

    monkeypatch.setattr(store.live, "forget_pages", forget)
    assert len(drained(spiller, backlog)) == 10 + (40 << 20)
    assert len(let_go) == (39 << 20) // FORGET_PAGES_BYTES


def test_take_of_an_empty_mailbox_is_nothing(spiller: Spiller) -> None:
    assert spiller.store.take(99, 1) == []
