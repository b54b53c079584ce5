"""A channel layer for Django Channels over a folder, for any number of processes with no server.

    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "rlite_pubsub.integrations.channels.ChannelLayer",
            "CONFIG": {"path": BASE_DIR / "store"},
        }
    }

    asgi:channel:NAME   a sorted set of what waits, by its deadline: time, chance, [local channels, message]
    asgi:group:NAME     a sorted set of channels, by the time at which they joined

Delivery is at most once. A process-local channel (`specific.PROCESS!NAME`) waits under what stands before the `!`: one
task of the process takes what is there and hands it to those who receive, and a message to a group is stored once for
each process, however many of its channels are in the group.

Each event loop has a client of its own, which is closed when the loop cancels its tasks at its end.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgpack
from channels.exceptions import ChannelFull
from channels.layers import BaseChannelLayer

from rlite_pubsub.embedded import aio_client

Message: TypeAlias = dict[str, Any]
_CHANCE_BYTES = 8


class ChannelLayer(BaseChannelLayer):
    """The whole specification: capacity, expiry, process-local channels, the extensions `groups` and `flush`."""

    extensions = ("groups", "flush")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        prefix: str = "asgi",
        expiry: float = 60,
        group_expiry: float = 86400,
        capacity: int = 100,
        channel_capacity: Mapping[Any, int] | None = None,
        **options: Any,
    ) -> None:
        """`path` is the store's folder; `expiry` and `group_expiry` are in seconds; `options` are the client's (`db`,
        `appendfsync`, ...)."""
        super().__init__(expiry=expiry, capacity=capacity)
        self.channel_capacity = self.compile_capacities(channel_capacity or {})
        self.group_expiry = group_expiry
        self._path = path
        self._options = {"socket_timeout": None, **options, "decode_responses": False}
        self._prefix = prefix
        self._loops: dict[asyncio.AbstractEventLoop, _InLoop] = {}

    # -- channels

    async def send(self, channel: str, message: Message) -> None:
        """Send a message. Raises ChannelFull if as many messages wait as the channel may hold."""
        _check_message(message)
        self.require_valid_channel_name(channel)
        if await self._put({self.non_local_name(channel): [channel]}, message):
            raise ChannelFull(channel)

    async def receive(self, channel: str) -> Message:
        """The oldest message; waits for one if there is none. What a receiver that is cancelled has got is put back."""
        self.require_valid_channel_name(channel)
        here = self._here()
        if "!" not in channel:
            return await here.take(self._key(channel))
        name = self.non_local_name(channel)
        if not name.endswith(here.name + "!"):
            raise ValueError(f"{channel} was not made in this event loop: nobody can receive on it here")
        return await here.receive(self._key(name), channel)

    async def new_channel(self, prefix: str = "specific") -> str:
        """Return a name that can be received on in this event loop alone, and sent to from anywhere."""
        return f"{prefix}.{self._here().name}!{uuid.uuid4().hex}"

    # -- groups

    async def group_add(self, group: str, channel: str) -> None:
        """Add a member, until `group_discard` or for `group_expiry`."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        key = self._group_key(group)
        pipe = self._here().redis.pipeline()
        pipe.zadd(key, {channel: time.time()})
        pipe.expire(key, math.ceil(self.group_expiry))
        await pipe.execute()

    async def group_discard(self, group: str, channel: str) -> None:
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        await self._here().redis.zrem(self._group_key(group), channel)

    async def group_send(self, group: str, message: Message) -> None:
        """Channels that are full do not get it."""
        _check_message(message)
        self.require_valid_group_name(group)
        key = self._group_key(group)
        pipe = self._here().redis.pipeline()
        pipe.zremrangebyscore(key, "-inf", time.time() - self.group_expiry)
        pipe.zrange(key, 0, -1)
        _, members = await pipe.execute()
        by_name: dict[str, list[str]] = {}
        for member in members:
            channel = member.decode() if isinstance(member, bytes) else member
            by_name.setdefault(self.non_local_name(channel), []).append(channel)
        if by_name:
            await self._put(by_name, message)

    # -- all of it

    async def flush(self) -> None:
        """Remove every channel and every group."""
        here = self._here()
        here.buffers.clear()
        async for key in here.redis.scan_iter(match=f"{self._prefix}:*", count=1000):
            await here.redis.unlink(key)

    async def close(self) -> None:
        """Let go of the store, in this event loop."""
        here = self._loops.get(asyncio.get_running_loop())
        if here is not None:
            await here.close()

    # -- inside

    async def _put(self, channels: Mapping[str, list[str]], message: Message) -> list[str]:
        """Store it under each name, for these channels. Under which names there was no room."""
        now = time.time()
        packed = msgpack.packb(message, use_bin_type=True)
        start = time.time_ns().to_bytes(8, "big")
        members = {
            name: start + os.urandom(_CHANCE_BYTES) + msgpack.packb([local if "!" in name else None, packed])
            for name, local in channels.items()
        }
        redis = self._here().redis
        pipe = redis.pipeline()
        for name, member in members.items():
            key = self._key(name)
            pipe.zremrangebyscore(key, "-inf", now)
            pipe.zadd(key, {member: now + self.expiry})
            pipe.zcard(key)
            pipe.expire(key, math.ceil(self.expiry))
        counts = (await pipe.execute())[2::4]
        full = []
        for (name, member), count in zip(members.items(), counts, strict=True):
            # Added and counted in one step, so that of two senders one finds it full. What a receiver has taken
            # meanwhile had room.
            if count > self.get_capacity(channels[name][0]) and await redis.zrem(self._key(name), member):
                full.append(name)
        return full

    def _here(self) -> _InLoop:
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            for other in [other for other in self._loops if other.is_closed()]:
                del self._loops[other]
            redis = aio_client.Redis(self._path, **self._options)
            here = self._loops[loop] = _InLoop(
                redis, self.expiry, self.get_capacity, lambda: self._loops.pop(loop, None)
            )
        return here

    def _key(self, name: str) -> str:
        return f"{self._prefix}:channel:{name}"

    def _group_key(self, group: str) -> str:
        return f"{self._prefix}:group:{group}"


class _InLoop:
    """A layer's part in one event loop: its client, and what has come for its local channels."""

    def __init__(
        self,
        redis: aio_client.Redis,
        expiry: float,
        capacity: Callable[[str], int],
        ended: Callable[[], object],
    ) -> None:
        self.name = uuid.uuid4().hex
        self.redis = redis
        self.buffers: dict[str, deque[tuple[float, bytes]]] = {}
        self._expiry = expiry
        self._capacity = capacity
        self._ended = ended
        self._receivers: dict[str, deque[asyncio.Future[tuple[float, bytes]]]] = {}
        self._swept = time.time()
        self._takers: list[tuple[Any, int]] = []  # idle connections that may block, with their ids
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.wait([self._keeper])

    async def _keep(self) -> None:
        """Keep the connections until the loop ends, or is closed; then close them all."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._ended()
            for reader in self._readers.values():
                reader.cancel()
            await asyncio.gather(*self._readers.values(), return_exceptions=True)
            for taker, _ in self._takers:
                await taker.aclose()
            await self.redis.aclose()

    # -- channels that any process may receive on

    async def take(self, key: str) -> Message:
        """Wait for the oldest message."""
        while True:
            taker, number = self._takers.pop() if self._takers else await self._new_taker()
            popping = asyncio.ensure_future(taker.bzpopmin(key, 0))
            try:
                popped = await asyncio.shield(popping)
            except asyncio.CancelledError:
                await self._leave(key, popping, number)
                raise
            finally:
                if popping.done():
                    self._takers.append((taker, number))
            deadline, (_, packed) = _opened(popped)
            if deadline >= time.time():
                return _unpack(packed)

    async def _new_taker(self) -> tuple[Any, int]:
        taker = self.redis.client()
        return taker, await taker.client_id()

    async def _leave(self, key: str, popping: asyncio.Future[Any], number: int) -> None:
        """End the wait. What it may have got is somebody else's."""
        if not popping.done():
            await self.redis.client_unblock(number)
        popped = await popping
        if popped is not None:
            await self.redis.zadd(key, {popped[1]: popped[2]})

    # -- channels of this loop

    async def receive(self, key: str, channel: str) -> Message:
        """Wait for the oldest message to this local channel."""
        if key not in self._readers or self._readers[key].done():
            self._readers[key] = asyncio.create_task(self._read(key))
        buffer = self.buffers.get(channel)
        while buffer:
            deadline, packed = buffer.popleft()
            if not buffer:
                del self.buffers[channel]
            if deadline >= time.time():
                return _unpack(packed)
        came: asyncio.Future[tuple[float, bytes]] = asyncio.get_running_loop().create_future()
        receivers = self._receivers.setdefault(channel, deque())
        receivers.append(came)
        try:
            _, packed = await came
        except asyncio.CancelledError:
            if came.done() and not came.cancelled():
                self.buffers.setdefault(channel, deque()).appendleft(came.result())
            raise
        finally:
            if came in receivers:
                receivers.remove(came)
            if not receivers:
                self._receivers.pop(channel, None)
        return _unpack(packed)

    async def _read(self, key: str) -> None:
        """Take what comes for the channels of this loop, and hand it to those who wait."""
        while True:
            deadline, (channels, packed) = _opened(await self.redis.bzpopmin(key, 0))
            if deadline >= time.time():
                for channel in channels:
                    self._hand(channel, deadline, packed)
            self._sweep()

    def _hand(self, channel: str, deadline: float, packed: bytes) -> None:
        receivers = self._receivers.get(channel)
        while receivers:
            came = receivers.popleft()
            if not came.done():
                came.set_result((deadline, packed))
                return
        buffer = self.buffers.setdefault(channel, deque())
        buffer.append((deadline, packed))
        if len(buffer) > self._capacity(channel):
            buffer.popleft()

    def _sweep(self) -> None:
        """Forget now and then what nobody has received in time."""
        now = time.time()
        if now - self._swept < self._expiry:
            return
        self._swept = now
        for channel in [channel for channel, buffer in self.buffers.items() if buffer[-1][0] < now]:
            del self.buffers[channel]


def _check_message(message: object) -> None:
    if not isinstance(message, dict):
        raise TypeError(f"a message is a dict, not {type(message).__name__}")


def _opened(popped: Any) -> tuple[float, Any]:
    """Deadline, and local channels with the message, of what BZPOPMIN has answered."""
    _, member, deadline = popped
    return deadline, msgpack.unpackb(member[8 + _CHANCE_BYTES :])


def _unpack(packed: bytes) -> Message:
    """Each receiver has a message of its own."""
    message: Message = msgpack.unpackb(packed, strict_map_key=False)
    return message
