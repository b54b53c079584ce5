"""pytest: each test has a server of its own, without a word of configuration.

    python -m pytest -q test_visits.py

prints

    ...
    2 passed in ...
"""

import pytest
import redis


@pytest.fixture
def r(rlite_server):
    return redis.from_url(rlite_server.url, decode_responses=True)


def test_visits_are_counted(r):
    assert [r.incr("visits") for _ in range(3)] == [1, 2, 3]


def test_store_is_empty_at_first(r):
    assert r.dbsize() == 0
