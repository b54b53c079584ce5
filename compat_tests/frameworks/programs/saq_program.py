"""SAQ: jobs, retries, delays, and one whose worker is killed."""

import asyncio
import os
import sys

import load
from place import URL
from saq import Queue

queue = Queue.from_url(URL)


async def add(context, *, a: int, b: int) -> int:
    return a + b


async def flaky(context) -> int:
    if context["job"].attempts < 2:
        raise RuntimeError("once")
    return context["job"].attempts


async def slow(context, *, name: str) -> str:
    if not os.path.exists(name):
        open(name, "w").close()
        print("slow begins", flush=True)
        await asyncio.sleep(3600)
    return "done by another"


async def numbered(context, *, number: int) -> None:
    await load.do_async(number)


concurrency = int(os.environ.get("SAQ_CONCURRENCY", 4))
settings = {"queue": queue, "functions": [add, flaky, slow, numbered], "concurrency": concurrency}
if os.environ.get("SAQ_SWEEPS"):
    settings["timers"] = {"sweep": 1}  # what is left by the killed


async def main(what: str) -> None:
    await queue.connect()
    if what == "jobs":
        assert await queue.apply("add", a=1, b=2, retries=5, timeout=60) == 3  # may meet its first sweep
        assert await queue.map("add", [{"a": n, "b": 1} for n in range(10)], timeout=60) == list(range(1, 11))
        assert await queue.apply("flaky", retries=3, retry_delay=0.1, timeout=60) == 2
        import time

        job = await queue.enqueue("add", a=2, b=2, scheduled=time.time() + 1)
        await job.refresh(60)
        assert job.result == 4
        assert (await queue.info())["queued"] == 0
    elif what == "offer":
        await load.offer_async(lambda number: queue.enqueue("numbered", number=number, timeout=3, retries=5))
    else:
        job = await queue.enqueue("slow", name="begun", timeout=3, retries=5)
        await job.refresh(120)
        print("result:", job.result, flush=True)
    await queue.disconnect()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
    print("done", flush=True)
