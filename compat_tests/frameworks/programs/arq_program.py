"""arq, which has a redis-py of its own: jobs, retries, delays, cron."""

import asyncio
import os
import sys
from datetime import timedelta

import load
from arq import Retry, create_pool, cron
from arq.connections import RedisSettings

SETTINGS = RedisSettings.from_dsn(os.environ["REDIS_URL"])


async def add(context, a: int, b: int) -> int:
    return a + b


async def flaky(context) -> int:
    if context["job_try"] < 2:
        raise Retry(defer=0.1)
    return context["job_try"]


async def often(context) -> None:
    print("cron", flush=True)


async def numbered(context, number: int) -> None:
    await load.do_async(number)


class WorkerSettings:
    functions = [add, flaky, numbered]
    job_timeout = 1  # ten seconds later a job of the killed is done again
    cron_jobs = [cron(often, second=set(range(60)))]
    redis_settings = SETTINGS
    poll_delay = 0.1


async def main() -> None:
    pool = await create_pool(SETTINGS)
    jobs = [await pool.enqueue_job("add", number, 1) for number in range(10)]
    assert [await job.result(timeout=60, poll_delay=0.05) for job in jobs] == list(range(1, 11))
    assert await (await pool.enqueue_job("flaky")).result(timeout=60, poll_delay=0.05) == 2
    job = await pool.enqueue_job("add", 2, 2, _defer_by=timedelta(seconds=0.5), _job_id="once")
    assert await pool.enqueue_job("add", 2, 2, _job_id="once") is None
    assert await job.result(timeout=60, poll_delay=0.05) == 4
    await pool.aclose()


async def offer() -> None:
    pool = await create_pool(SETTINGS)

    async def enqueue(number: int) -> None:
        # Where the connection ends between WATCH and EXEC it returns nothing.
        assert await pool.enqueue_job("numbered", number), "it was not enqueued"

    await load.offer_async(enqueue)


if __name__ == "__main__":
    asyncio.run(offer() if sys.argv[1:] == ["offer"] else main())
    print("done", flush=True)
    sys.exit()
