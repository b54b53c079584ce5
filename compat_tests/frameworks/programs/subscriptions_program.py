"""Subscriptions: `KIND hear` in one process, `KIND tell` in another, while the test kills the server and who hears."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable

from place import URL

assert URL
PAUSE_S = 0.05


def heard(number: int) -> None:
    print("heard", number, flush=True)


async def tell(send: Callable[[int], Awaitable[object]]) -> None:
    """Until the test has seen enough."""
    number = 0
    while not os.path.exists("enough"):
        try:
            await send(number)
        except Exception as failure:  # each library has its own for a server that is not there
            print("refused", number, repr(failure), flush=True)
        else:
            print("told", number, flush=True)
        number += 1
        await asyncio.sleep(PAUSE_S)


async def channels_redis(layer, part: str) -> None:
    if part == "tell":
        await tell(lambda number: layer.group_send("room", {"type": "number", "number": number}))
        return
    channel = await layer.new_channel()
    await layer.group_add("room", channel)
    print("hears", flush=True)
    while True:
        try:
            heard((await layer.receive(channel))["number"])
        except Exception as failure:  # of layers/core: where the server has gone, receive() says so
            print("disturbed", repr(failure), flush=True)
            await asyncio.sleep(PAUSE_S)


async def core(part: str) -> None:
    from channels_redis.core import RedisChannelLayer

    await channels_redis(RedisChannelLayer(hosts=[URL]), part)


async def pubsub(part: str) -> None:
    from channels_redis.pubsub import RedisPubSubChannelLayer

    await channels_redis(RedisPubSubChannelLayer(hosts=[URL]), part)


async def socketio(part: str) -> None:
    import socketio
    import uvicorn

    if part == "tell":
        manager = socketio.AsyncRedisManager(URL, write_only=True)
        await tell(lambda number: manager.emit("number", number))
        return
    io = socketio.AsyncServer(async_mode="asgi", client_manager=socketio.AsyncRedisManager(URL))
    server = uvicorn.Server(uvicorn.Config(socketio.ASGIApp(io), port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(PAUSE_S)
    client = socketio.AsyncClient()
    client.on("number", heard)
    await client.connect(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
    print("hears", flush=True)
    await serving


async def broadcaster(part: str, scheme: str = "redis://") -> None:
    from broadcaster import Broadcast

    async with Broadcast(URL.replace("redis://", scheme)) as broadcast:
        if part == "tell":
            await tell(lambda number: broadcast.publish(channel="room", message=str(number)))
            return
        # Its listener may miss a first subscription, and waits for a second one then.
        async with broadcast.subscribe(channel="other"), broadcast.subscribe(channel="room") as subscriber:
            print("hears", flush=True)
            async for event in subscriber:
                heard(int(event.message))


async def broadcaster_over_streams(part: str) -> None:
    await broadcaster(part, "redis-stream://")


async def faststream(part: str) -> None:
    from faststream import FastStream
    from faststream.redis import RedisBroker

    broker = RedisBroker(URL)
    if part == "tell":
        await broker.connect()
        await tell(lambda number: broker.publish(number, channel="room"))
        return

    @broker.subscriber("room")
    async def number_came(number: int) -> None:
        heard(number)

    app = FastStream(broker)

    @app.after_startup
    async def started() -> None:
        print("hears", flush=True)

    await app.run()


async def flask_sse(part: str) -> None:
    import httpx
    from flask import Flask
    from flask_sse import sse
    from werkzeug.serving import make_server

    app = Flask(__name__)
    app.config["REDIS_URL"] = URL
    app.register_blueprint(sse, url_prefix="/stream")
    if part == "tell":

        async def publish(number: int) -> None:
            with app.app_context():
                sse.publish(number)

        await tell(publish)
        return
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("hears", flush=True)
    while True:
        try:
            with httpx.stream("GET", f"http://127.0.0.1:{server.port}/stream", timeout=None) as stream:
                for line in stream.iter_lines():
                    if line.startswith("data:"):
                        heard(int(line[5:]))
        except httpx.HTTPError as failure:  # a browser's EventSource comes again, too
            print("disturbed", repr(failure), flush=True)


if __name__ == "__main__":
    kinds = (core, pubsub, socketio, broadcaster, broadcaster_over_streams, faststream, flask_sse)
    asyncio.run({kind.__name__: kind for kind in kinds}[sys.argv[1]](sys.argv[2]))
    print("done", flush=True)
    os._exit(0)
