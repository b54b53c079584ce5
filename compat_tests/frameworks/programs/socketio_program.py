"""python-socketio: two servers, whose clients hear each other through the store, and a program that only sends."""

import asyncio
import os
import sys

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
    heard: dict[str, asyncio.Queue[str]] = {}
    connected = []
    for port in ports:
        client = socketio.AsyncClient()
        heard[port] = asyncio.Queue()
        client.on("said", heard[port].put)
        await client.connect(f"http://127.0.0.1:{port}")
        connected.append(client)
    async with asyncio.timeout(60):
        await connected[0].emit("say", "hello")
        assert [await heard[port].get() for port in ports] == ["hello", "hello"]
        assert await connected[1].call("join", "room") == "joined"
        sender = socketio.AsyncRedisManager(URL, write_only=True)
        await sender.emit("said", "to the room", room="room")
        assert await heard[ports[1]].get() == "to the room"
        await sender.emit("said", "to all")
        assert [await heard[port].get() for port in ports] == ["to all", "to all"]
    for client in connected:
        await client.disconnect()


if sys.argv[1] == "serve":
    uvicorn.run(socketio.ASGIApp(io), port=int(sys.argv[2]), log_level="info")
else:
    asyncio.run(clients(*sys.argv[2:]))
    print("done", flush=True)
    os._exit(0)
