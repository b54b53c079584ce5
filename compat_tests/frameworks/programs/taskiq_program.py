"""taskiq over lists and over streams, with results, retries and schedules."""

import asyncio
import os
import sys

import load
from place import URL
from taskiq import SimpleRetryMiddleware
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker

if os.environ.get("TASKIQ_KIND") == "stream":
    unfinished = RedisStreamBroker(url=URL, idle_timeout=2000, unacknowledged_lock_timeout=5)
else:
    unfinished = ListQueueBroker(url=URL)
broker = unfinished.with_result_backend(RedisAsyncResultBackend(redis_url=URL))
broker.add_middlewares(SimpleRetryMiddleware(default_retry_count=3))


@broker.task
async def add(a: int, b: int) -> int:
    return a + b


@broker.task(retry_on_error=True)
async def flaky(name: str) -> str:
    if not os.path.exists(name):
        open(name, "w").close()
        raise RuntimeError("once")
    return "mended"


@broker.task
async def numbered(number: int) -> None:
    await load.do_async(number)


async def offer() -> None:
    import taskiq_program as program

    await program.broker.startup()
    await load.offer_async(program.numbered.kiq)


async def main() -> None:
    import taskiq_program as program

    await program.broker.startup()
    tasks = [await program.add.kiq(number, 1) for number in range(10)]
    results = [await task.wait_result(timeout=60) for task in tasks]
    assert [result.return_value for result in results] == list(range(1, 11))
    result = await (await program.flaky.kiq("flaky")).wait_result(timeout=60)
    assert result.return_value == "mended", result
    await program.broker.shutdown()


if __name__ == "__main__":
    asyncio.run(offer() if sys.argv[1:] == ["offer"] else main())
    print("done", flush=True)
    sys.exit()
