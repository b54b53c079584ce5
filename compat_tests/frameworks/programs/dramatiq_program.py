"""Dramatiq as its documentation has it: actors with results, retries, delays, pipelines and groups."""

import os
import sys
import time

import dramatiq
import load
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend as ResultBackend

import rlite_pubsub
from rlite_pubsub.integrations.dramatiq import RliteBroker

if "REDIS_URL" in os.environ:
    broker = RedisBroker(url=os.environ["REDIS_URL"], heartbeat_timeout=2000, maintenance_chance=1_000_000)
    client = broker.client
else:
    broker = RliteBroker("./store", heartbeat_timeout=2000, maintenance_chance=1_000_000)
    client = rlite_pubsub.Redis("./store")
broker.add_middleware(Results(backend=ResultBackend(client=client)))
dramatiq.set_broker(broker)
one_at_a_time = ConcurrentRateLimiter(LimitBackend(client=client), "one", limit=1)


@dramatiq.actor(store_results=True)
def add(a: int, b: int) -> int:
    return a + b


@dramatiq.actor(store_results=True, max_retries=5, min_backoff=50, max_backoff=100)
def flaky(name: str) -> str:
    if not os.path.exists(name):
        open(name, "w").close()
        raise RuntimeError("once")
    return "mended"


@dramatiq.actor(store_results=True)
def limited(n: int) -> bool:
    with one_at_a_time.acquire(raise_on_failure=False) as acquired:
        return bool(acquired)


@dramatiq.actor(store_results=True)
def slow(name: str) -> str:
    """The first who does it is killed meanwhile."""
    if not os.path.exists(name):
        open(name, "w").close()
        print("slow begins", flush=True)
        time.sleep(3600)
    return "done by another"


@dramatiq.actor
def numbered(number: int) -> None:
    load.do(number)


def client_side() -> None:
    assert add.send(1, 2).get_result(block=True, timeout=60_000) == 3
    assert flaky.send("flaky").get_result(block=True, timeout=60_000) == "mended"
    before = time.time()
    assert add.send_with_options(args=(2, 2), delay=300).get_result(block=True, timeout=60_000) == 4
    assert time.time() - before >= 0.3
    group = dramatiq.group([add.message(i, i) for i in range(20)]).run()
    assert list(group.get_results(block=True, timeout=60_000)) == [2 * i for i in range(20)]
    pipe = (add.message(1, 1) | add.message(3)).run()
    assert pipe.get_result(block=True, timeout=60_000) == 5
    assert limited.send(1).get_result(block=True, timeout=60_000) is True
    broker.join("default", timeout=60_000)


def killed() -> None:
    print("result:", slow.send("begun").get_result(block=True, timeout=120_000), flush=True)


def offer() -> None:
    load.offer(numbered.send)


if __name__ == "__main__":
    {"client": client_side, "killed": killed, "offer": offer}[sys.argv[1]]()
    print("done", flush=True)
