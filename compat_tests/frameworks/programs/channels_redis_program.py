"""channels_redis, both of its layers, in two processes: one sends, one has joined a group."""

import asyncio
import sys

from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer
from place import URL


async def main(kind: str, part: str) -> None:
    layer = (RedisChannelLayer if kind == "core" else RedisPubSubChannelLayer)(hosts=[URL])
    mine = await layer.new_channel()
    if part == "listen":
        await layer.group_add("room", mine)
        print("joined", mine, flush=True)
        for _ in range(3):
            message = await layer.receive(mine)
            await layer.send(message["reply_to"], {"type": "reply", "n": message["n"]})
        await layer.group_discard("room", mine)
    else:
        await layer.group_send("room", {"type": "ask", "n": 1, "reply_to": mine})
        assert await layer.receive(mine) == {"type": "reply", "n": 1}
        for n in (2, 3):
            await layer.send(part, {"type": "ask", "n": n, "reply_to": mine})
            assert await layer.receive(mine) == {"type": "reply", "n": n}
    if kind == "core" and part != "listen":
        from channels.exceptions import ChannelFull

        small = RedisChannelLayer(hosts=[URL], capacity=2)
        await small.send("jobs", {"type": "a"})
        await small.send("jobs", {"type": "b"})
        try:
            await small.send("jobs", {"type": "c"})
        except ChannelFull:
            pass
        else:
            raise AssertionError("not full")
        assert [(await small.receive("jobs"))["type"] for _ in range(2)] == ["a", "b"]
        await small.flush()
    await layer.close_pools() if kind == "core" else await layer.flush()


asyncio.run(main(*sys.argv[1:]))
print("done", flush=True)
