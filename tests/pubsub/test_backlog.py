"""The backlog keeps the order over head, loss, disk and tail, and counts right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Push
from rlite_pubsub.pubsub.backlog import Backlog

THRESHOLD = 10


def message(payload: bytes, channel: bytes = b"c") -> bytes:
    return encode(Push([b"message", channel, payload]), 3)


def spilled(*parts: bytes) -> Backlog:
    """A backlog whose head is full already."""
    backlog = Backlog(1, 0.0)
    backlog.append(b"x" * THRESHOLD, THRESHOLD, 0)
    for part in parts:
        backlog.append(part, THRESHOLD, 0)
    return backlog


def test_parts_gather_in_the_head_up_to_the_threshold_and_then_in_the_tail() -> None:
    backlog = Backlog(1, 0.0)
    backlog.append(b"12345", THRESHOLD, 0)
    backlog.append(b"678901", THRESHOLD, 0)
    backlog.append(b"tail", THRESHOLD, 1)
    assert list(backlog.head) == [b"12345", b"678901"]
    assert backlog.tail == [b"tail"]
    assert (backlog.head_bytes, backlog.tail_bytes, backlog.tail_framing_bytes) == (11, 4, 1)


def test_part_that_has_begun_to_be_written_is_the_head_whatever_the_threshold() -> None:
    backlog = Backlog(1, 0.0)
    backlog.append(memoryview(b"rest"), 0, 0)
    assert backlog.head_bytes == 4
    assert backlog.tail == []
    backlog.append(b"next", 0, 0)
    assert backlog.tail == [b"next"]


def test_empty_part_does_not_stand_in_the_way() -> None:
    backlog = Backlog(1, 0.0)
    for part in (b"", b"1", b"", b"2"):
        backlog.append(part, THRESHOLD, 0)
    backlog.written(2)
    assert not backlog


def test_what_is_written_leaves_the_head_byte_by_byte() -> None:
    backlog = Backlog(1, 0.0)
    for part in (b"123", b"45", b"6789"):
        backlog.append(part, 100, 0)
    backlog.written(4)
    assert b"".join(bytes(part) for part in backlog.head) == b"56789"
    backlog.written(1)
    backlog.written(4)
    assert backlog.head_bytes == 0
    assert not backlog


def test_new_parts_do_not_overtake_what_is_on_disk() -> None:
    backlog = spilled(b"first")
    backlog.move_tail()
    backlog.written(THRESHOLD)
    backlog.append(b"second", THRESHOLD, 0)
    assert list(backlog.head) == []
    backlog.refill([(b"first", 0)])
    assert list(backlog.head) == [b"first"]
    assert backlog.tail == [b"second"]
    backlog.written(5)
    backlog.refill([])
    assert list(backlog.head) == [b"second"]


def test_loss_is_told_behind_the_head_and_before_the_disk_and_the_tail() -> None:
    backlog = spilled(message(b"lost"))
    backlog.move_tail()
    backlog.append(message(b"kept"), THRESHOLD, 0)
    backlog.lose_disk([(message(b"lost"), 0)], 3)
    assert backlog.disk_bytes == 0
    backlog.append(message(b"new"), THRESHOLD, 0)
    backlog.written(THRESHOLD)
    assert backlog.tell_loss(3).messages == 1
    assert list(backlog.head) == [encode(Push([b"gap", b"c", 1, 0]), 3)]
    backlog.written(backlog.head_bytes)
    backlog.refill([])
    assert b"".join(map(bytes, backlog.head)) == message(b"kept") + message(b"new")


def test_new_parts_do_not_overtake_a_loss_that_is_not_told_yet() -> None:
    backlog = spilled(message(b"lost"))
    backlog.lose_tail(3)
    backlog.written(THRESHOLD)
    assert backlog
    backlog.append(message(b"new"), THRESHOLD, 0)
    assert list(backlog.head) == []
    backlog.tell_loss(3)
    assert backlog.loss is None


def test_losses_at_one_place_are_one_loss() -> None:
    backlog = spilled(message(b"1"))
    backlog.lose_tail(3)
    backlog.append(message(b"2"), THRESHOLD, 0)
    backlog.lose_tail(3)
    backlog.written(THRESHOLD)
    assert backlog.tell_loss(3).messages == 2


def test_weight_leaves_out_the_framing_of_what_is_on_disk() -> None:
    backlog = spilled()
    backlog.append(b"123456", THRESHOLD, 2)
    assert (backlog.total_bytes, backlog.weight_bytes, backlog.memory_bytes) == (16, 16, 16)
    backlog.move_tail()
    assert (backlog.total_bytes, backlog.weight_bytes, backlog.memory_bytes) == (16, 14, 10)
    backlog.refill([(b"123456", 2)])
    assert (backlog.total_bytes, backlog.weight_bytes, backlog.memory_bytes) == (16, 16, 16)


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from(["write", "spill", "refill"]))))
def test_nothing_is_lost_or_reordered_whatever_happens(steps: list[bytes | str]) -> None:
    backlog = Backlog(1, 0.0)
    disk: list[tuple[bytes, int]] = []
    said = written = b""

    def write(count: int) -> None:
        nonlocal written
        if not backlog.head:
            blobs, disk[:] = disk[:1], disk[1:]
            backlog.refill(blobs)
        head = b"".join(map(bytes, backlog.head))
        count = min(count, len(head))
        written += head[:count]
        backlog.written(count)

    for step in steps:
        if isinstance(step, bytes):
            said += step
            backlog.append(step, THRESHOLD, 0)
        elif step == "spill":
            if backlog.tail:
                disk.append((b"".join(backlog.tail), 0))
                backlog.move_tail()
        elif backlog:
            write(3 if step == "write" else 1000)
        assert backlog.total_bytes == len(said) - len(written)
    while backlog:
        write(1000)
    assert written == said
