"""limits: fixed, moving and sliding windows, in a process of several."""

import sys

from limits import parse
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter
from place import URL, client

storage = RedisStorage(URL or "redis://nowhere", connection_pool=client().connection_pool)
limit = parse("10/hour")
took = []
for strategy in (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter):
    limiter = strategy(storage)
    took.append(sum(limiter.hit(limit, strategy.__name__) for _ in range(8)))
    remaining = limiter.get_window_stats(limit, strategy.__name__).remaining
    assert remaining == (2 if sys.argv[1] == "first" else 0)
print("took", took, flush=True)
