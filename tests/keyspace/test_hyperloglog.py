"""HyperLogLogs that are damaged. What well-made ones answer is compared with redis-server (compat_tests/)."""

from __future__ import annotations

import tracemalloc

import pytest

from rlite_pubsub.keyspace import hyperloglog
from rlite_pubsub.keyspace.hyperloglog import Corrupted


def test_a_value_that_claims_more_registers_than_there_are_is_refused_before_they_are_made() -> None:
    hll = hyperloglog.new() + b"\x7f\xff" * 4000
    tracemalloc.start()
    try:
        with pytest.raises(Corrupted):
            hyperloglog.registers(hll)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("elements", [0, 1, 100, 1500, 20_000])
def test_what_two_have_counted_together_is_the_higher_of_each_register(elements: int) -> None:
    one, other = counted(range(500)), counted(range(400, 400 + elements))
    both = hyperloglog.highest(hyperloglog.registers(one), hyperloglog.registers(other))
    assert hyperloglog.raised(hyperloglog.registers(one), other) == both
    assert hyperloglog.raised(bytearray(hyperloglog.REGISTERS), other) == hyperloglog.registers(other)


def counted(numbers: range) -> bytearray:
    hll, places = hyperloglog.new(), hyperloglog.Places()
    for number in numbers:
        hyperloglog.add(hll, b"%d" % number, 3000, places)
    return hll


@pytest.mark.parametrize("most_bytes", [0, 100, 3000, 4000, 16_000])
@pytest.mark.parametrize("before", [0, 100, 5000])
def test_many_elements_at_once_make_the_same_bytes_as_one_by_one(before: int, most_bytes: int) -> None:
    for count in (0, 1, 1999, 2000, 2001, 9000, 30_000):
        added = [b"%d" % number for number in range(before // 2, before // 2 + count)]
        once, places = counted(range(before)), hyperloglog.Places()
        one_by_one = bytearray(once)
        changed = False
        for element in added:
            changed |= hyperloglog.add(one_by_one, element, most_bytes, places)
        assert hyperloglog.add_all(once, added, most_bytes) == changed
        once[hyperloglog.HEAD_BYTES - 1] = one_by_one[hyperloglog.HEAD_BYTES - 1] = 0  # the mark of a stale count
        assert once == one_by_one


@pytest.mark.parametrize("runs", [b"", b"\x7f\xfe", b"\x7f\xff\x80", b"\x7f\xff\x00", b"\x7f", b"\x80" * 20_000])
def test_a_sparse_one_that_has_not_every_register_once_is_damaged(runs: bytes) -> None:
    hll = hyperloglog.opened(bytes(hyperloglog.new()[: hyperloglog.HEAD_BYTES]) + runs)
    for read in (hyperloglog.registers, lambda hll: hyperloglog.raised(bytearray(hyperloglog.REGISTERS), hll)):
        with pytest.raises(hyperloglog.Corrupted):
            read(hll)


@pytest.mark.sources("forbids compiled code to call a compiled function")
def test_a_small_one_is_merged_without_a_look_at_every_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """PFMERGE and PFCOUNT of 50,000 keys with one element each took 2.5 s, Redis 5 ms."""
    monkeypatch.setattr(hyperloglog, "registers", None)
    assert sum(hyperloglog.raised(bytearray(hyperloglog.REGISTERS), counted(range(1)))) > 0
