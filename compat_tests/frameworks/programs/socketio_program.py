"""python-socketio: two servers, whose clients hear each other through the store, and a program that only sends."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import socketio
import uvicorn
from place import URL

io = socketio.AsyncServer(async_mode="asgi", client_manager=socketio.AsyncRedisManager(URL))


@io.event
async def say(sid: str, text: str) -> None:
    await io.emit("said", text)


@io.event
async def join(sid: str, room: str) -> str:
    await io.enter_room(sid, room)
    return "joined"


async def clients(*ports: str) -> None:
    heard: dict[str, set[str]] = {}
    connected = []
    for port in ports:
        client = socketio.AsyncClient()
        heard[port] = set()
        client.on("said", heard[port].add)
        await client.connect(f"http://127.0.0.1:{port}")
        connected.append(client)

    async def until_heard(text: str, by: tuple[str, ...], send: Callable[[], Awaitable[object]]) -> None:
        """Send it until all have heard it: nobody says when the servers have subscribed."""
        async with asyncio.timeout(60):
            while not all(text in heard[port] for port in by):
                await send()
                await asyncio.sleep(0.2)

    await until_heard("hello", ports, lambda: connected[0].emit("say", "hello"))
    assert await connected[1].call("join", "room") == "joined"
    sender = socketio.AsyncRedisManager(URL, write_only=True)
    await until_heard("to the room", ports[1:], lambda: sender.emit("said", "to the room", room="room"))
    await until_heard("to all", ports, lambda: sender.emit("said", "to all"))
    assert "to the room" not in heard[ports[0]]
    for client in connected:
        await client.disconnect()


if sys.argv[1] == "serve":
    uvicorn.run(socketio.ASGIApp(io), port=int(sys.argv[2]), log_level="info")
else:
    asyncio.run(clients(*sys.argv[2:]))
    print("done", flush=True)
    os._exit(0)
