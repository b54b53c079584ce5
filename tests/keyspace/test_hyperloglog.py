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
