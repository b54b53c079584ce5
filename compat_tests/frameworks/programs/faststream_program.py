"""FastStream: channels, patterns, lists, streams with groups, and a request."""

import asyncio
import os
import sys

import load
from faststream import FastStream
from faststream.redis import RedisBroker, StreamSub
from place import URL

broker = RedisBroker(URL)
app = FastStream(broker)


@broker.subscriber("in-channel")
@broker.publisher(list="out")
async def channel(text: str) -> str:
    return f"channel {text}"


@broker.subscriber("logs.{level}")
@broker.publisher(list="out")
async def pattern(text: str) -> str:
    return f"pattern {text}"


@broker.subscriber(list="in-list")
@broker.publisher(list="out")
async def listed(text: str) -> str:
    return f"list {text}"


@broker.subscriber(stream=StreamSub("in-stream", group="group", consumer="one"))
@broker.publisher(list="out")
async def streamed(text: str) -> str:
    return f"stream {text}"


@broker.subscriber("double")
async def double(number: int) -> int:
    return 2 * number


KIND = os.environ.get("FASTSTREAM_KIND", "list")
NUMBERS = {"list": {"list": "numbers"}, "stream": {"stream": "numbers"}}[KIND]

if KIND == "list":

    @broker.subscriber(**NUMBERS)
    async def numbered(number: int) -> None:
        await load.do_async(number)
else:
    # Two subscribers of one group: one for what is new, and one for what somebody has left.
    @broker.subscriber(stream=StreamSub("numbers", group="group", consumer=f"new {os.getpid()}"))
    @broker.subscriber(stream=StreamSub("numbers", group="group", consumer=f"old {os.getpid()}", min_idle_time=2000))
    async def numbered(number: int) -> None:
        await load.do_async(number)


async def offer() -> None:
    client = RedisBroker(URL)
    await client.connect()
    await load.offer_async(lambda number: client.publish(number, **NUMBERS))


async def main() -> None:
    client = RedisBroker(URL)
    got: asyncio.Queue[str] = asyncio.Queue()

    @client.subscriber(list="out")
    async def out(text: str) -> None:
        await got.put(text)

    await client.start()
    await client.publish("a", channel="in-channel")
    await client.publish("b", channel="logs.error")
    await client.publish("c", list="in-list")
    await client.publish("d", stream="in-stream")
    async with asyncio.timeout(60):
        assert {await got.get() for _ in range(4)} == {"channel a", "pattern b", "list c", "stream d"}
        answer = await client.request(21, channel="double", timeout=30)
        assert await answer.decode() == 42
    await client.stop()


if __name__ == "__main__":
    asyncio.run(offer() if sys.argv[1:] == ["offer"] else main())
    print("done", flush=True)
