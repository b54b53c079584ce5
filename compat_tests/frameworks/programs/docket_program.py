"""docket: tasks now and later, replaced, cancelled, retried, and one whose worker is killed."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta

import load
from docket import Docket, Retry
from place import URL


async def add(a: int, b: int) -> int:
    return a + b


async def note(text: str) -> None:
    print("note:", text, flush=True)


async def flaky(name: str, retry: Retry = Retry(attempts=3)) -> None:  # noqa: B008
    if not os.path.exists(name):
        open(name, "w").close()
        raise RuntimeError("once")
    print("note: mended", flush=True)


async def slow(name: str) -> None:
    if not os.path.exists(name):
        open(name, "w").close()
        print("slow begins", flush=True)
        await asyncio.sleep(3600)
    print("note: done by another", flush=True)


async def numbered(number: int) -> None:
    await load.do_async(number)


tasks = [add, note, flaky, slow, numbered]


async def main(what: str) -> None:
    async with Docket(name="program", url=URL + "/0") as docket:
        for task in tasks:
            docket.register(task)
        if what == "killed":
            await docket.add(slow)("begun")
            return
        if what == "offer":
            await load.offer_async(lambda number: docket.add(numbered)(number))
            return
        await docket.add(note)("now")
        await docket.add(note, when=datetime.now(UTC) + timedelta(seconds=0.5))("later")
        await docket.add(note, when=datetime.now(UTC) + timedelta(hours=1), key="cancelled")("never")
        await docket.cancel("cancelled")
        await docket.add(note, when=datetime.now(UTC) + timedelta(hours=1), key="replaced")("never")
        await docket.replace(note, when=datetime.now(UTC), key="replaced")("replaced")
        await docket.add(flaky)("flaky")
        execution = await docket.add(add)(1, 2)
        assert await execution.get_result(timeout=timedelta(seconds=60)) == 3


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
    print("done", flush=True)
