"""asyncio: a room of a chat, with no server. What was said before is read first, then what is said now.

    python chat.py

prints

    ada: is anybody there?
    grace: I am
"""

import asyncio

from rlite_pubsub import topics

ROOM = "room"


async def say(who, what):
    await topics.aio.publish("./store", ROOM, {"who": who, "what": what})


async def listen(lines):
    async for entry in topics.aio.subscribe("./store", ROOM, since=topics.BEGINNING):
        print(f"{entry['who'].decode()}: {entry['what'].decode()}")
        lines -= 1
        if not lines:
            break


async def main():
    await say("ada", "is anybody there?")
    listener = asyncio.create_task(listen(lines=2))
    await say("grace", "I am")
    await listener


if __name__ == "__main__":
    asyncio.run(main())
