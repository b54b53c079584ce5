"""The channel layer keeps the specification of Django Channels, with its processes on one folder and no server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from channels.exceptions import ChannelFull
from other_process import OtherProcess
from patience import PATIENCE_S, until_async

import rlite_pubsub
from rlite_pubsub.integrations.channels import ChannelLayer

_ANOTHER = """
import asyncio
from rlite_pubsub.integrations.channels import ChannelLayer
layer = ChannelLayer(folder)
async def main():
    mine = await layer.new_channel()
    await layer.group_add("room", mine)
    say(mine)
    while True:
        message = await layer.receive(mine)
        if message["type"] == "stop":
            break
        if "reply_to" in message:
            await layer.send(message["reply_to"], {"type": "reply", "to": message["text"]})
        else:
            say(message["text"])
    await layer.group_discard("room", mine)
asyncio.run(main())
"""


@pytest.fixture
async def layer(folder: Path) -> AsyncIterator[ChannelLayer]:
    layer = ChannelLayer(folder, capacity=3, channel_capacity={"wide.*": 5})
    yield layer
    await layer.close()


async def within(receiving: object) -> dict[str, object]:
    return await asyncio.wait_for(receiving, PATIENCE_S)  # type: ignore[arg-type]


async def settle() -> None:
    """Let tasks go on until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_local", [False, True])
async def test_messages_are_received_whole_and_in_order(layer: ChannelLayer, is_local: bool) -> None:
    channel = await layer.new_channel() if is_local else "jobs"
    sent = [{"type": "a", "n": n, "bytes": b"\xff", "list": [1, 2.5, None, True], "map": {"ü": {}}} for n in range(3)]
    for message in sent:
        await layer.send(channel, message)
    assert [await within(layer.receive(channel)) for _ in sent] == sent


@pytest.mark.parametrize("is_local", [False, True])
async def test_a_receiver_waits_for_what_is_sent_later(layer: ChannelLayer, is_local: bool) -> None:
    channel = await layer.new_channel() if is_local else "jobs"
    receiving = asyncio.create_task(layer.receive(channel))
    await settle()
    await layer.send(channel, {"type": "late"})
    assert await within(receiving) == {"type": "late"}


async def test_a_channel_that_is_full_refuses_and_takes_again_when_there_is_room(layer: ChannelLayer) -> None:
    for channel, capacity in [("jobs", 3), ("wide.jobs", 5)]:
        for n in range(capacity):
            await layer.send(channel, {"n": n})
        with pytest.raises(ChannelFull):
            await layer.send(channel, {"n": -1})
        assert (await within(layer.receive(channel)))["n"] == 0
        await layer.send(channel, {"n": capacity})
        assert [(await within(layer.receive(channel)))["n"] for _ in range(capacity)] == list(range(1, capacity + 1))


@pytest.mark.parametrize("is_local", [False, True])
async def test_what_is_not_received_in_time_expires(folder: Path, is_local: bool) -> None:
    layer = ChannelLayer(folder, expiry=0.05)
    channel = await layer.new_channel() if is_local else "jobs"
    await layer.send(channel, {"n": 1})
    if is_local:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(layer.receive(await layer.new_channel()), 0.01)  # takes the other's, too
    sent = time.time()
    await until_async(lambda: asyncio.sleep(0, time.time() > sent + 0.06))
    receiving = asyncio.create_task(layer.receive(channel))
    await settle()
    layer.expiry = 60
    await layer.send(channel, {"n": 2})
    assert await within(receiving) == {"n": 2}
    await layer.close()


@pytest.mark.parametrize("is_local", [False, True])
async def test_a_receiver_that_is_cancelled_costs_no_message(layer: ChannelLayer, is_local: bool) -> None:
    channel = await layer.new_channel() if is_local else "jobs"
    for n in range(30):  # it is cancelled at every step on its way
        receiving = asyncio.create_task(layer.receive(channel))
        await settle()
        sending = asyncio.create_task(layer.send(channel, {"n": n}))
        for _ in range(n):
            await asyncio.sleep(0)
        receiving.cancel()
        await sending
        got = await asyncio.gather(receiving, return_exceptions=True)
        if not isinstance(got[0], dict):
            got = [await within(layer.receive(channel))]
        assert got == [{"n": n}]


async def test_many_receivers_share_a_channel(layer: ChannelLayer) -> None:
    receiving = [asyncio.create_task(layer.receive("wide.jobs")) for _ in range(5)]
    await settle()
    for n in range(5):
        await layer.send("wide.jobs", {"n": n})
    assert sorted([(await within(task))["n"] for task in receiving]) == list(range(5))  # type: ignore[type-var]


async def test_a_group_reaches_its_channels_and_full_ones_are_left_out(layer: ChannelLayer) -> None:
    first, second = await layer.new_channel(), await layer.new_channel("other")
    for channel in (first, second, "jobs"):
        await layer.group_add("room", channel)
    for n in range(4):
        await layer.group_send("room", {"n": n})
        if n < 3:
            assert (await within(layer.receive(first)))["n"] == n
    assert (await within(layer.receive(first)))["n"] == 3
    assert [(await within(layer.receive("jobs")))["n"] for _ in range(3)] == [0, 1, 2]
    await layer.group_discard("room", first)
    await layer.group_send("room", {"n": 4})
    assert (await within(layer.receive("jobs")))["n"] == 4
    await layer.group_send("room", {"n": 5})
    assert (await within(layer.receive("jobs")))["n"] == 5
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(layer.receive(first), 0.01)


async def test_membership_of_a_group_expires(folder: Path) -> None:
    layer = ChannelLayer(folder, group_expiry=0.02)
    await layer.group_add("room", "jobs")
    joined = time.time()
    await until_async(lambda: asyncio.sleep(0, time.time() > joined + 0.03))
    await layer.group_send("room", {"n": 1})
    await layer.send("jobs", {"n": 2})
    assert await within(layer.receive("jobs")) == {"n": 2}
    await layer.close()


async def test_flush_removes_everything_and_nothing_of_others(folder: Path, layer: ChannelLayer) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.set("asgi", "mine")
        local = await layer.new_channel()
        await layer.group_add("room", local)
        await layer.send("jobs", {"n": 1})
        await layer.send(local, {"n": 1})
        assert client.dbsize() == 4
        await layer.flush()
        assert client.keys() == [b"asgi"]


async def test_what_is_no_name_or_no_message_is_refused(layer: ChannelLayer) -> None:
    with pytest.raises(TypeError):
        await layer.send("two words", {})
    with pytest.raises(TypeError):
        await layer.group_add("two words", "jobs")
    with pytest.raises(TypeError):
        await layer.send("jobs", "text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not made in this event loop"):
        await layer.receive("specific.another!one")


async def test_processes_talk_and_one_that_is_killed_does_not_disturb(folder: Path, layer: ChannelLayer) -> None:
    mine = await layer.new_channel()
    await layer.group_add("room", mine)
    with OtherProcess(folder, _ANOTHER) as one, OtherProcess(folder, _ANOTHER) as two:
        names = [await asyncio.to_thread(other.hear) for other in (one, two)]
        for name in names:
            await layer.send(name, {"type": "ask", "reply_to": mine, "text": name})
            assert await within(layer.receive(mine)) == {"type": "reply", "to": name}
        await layer.group_send("room", {"type": "say", "text": "all"})
        assert await within(layer.receive(mine)) == {"type": "say", "text": "all"}
        assert [await asyncio.to_thread(other.hear) for other in (one, two)] == ["all", "all"]
        one.kill()
        await layer.group_send("room", {"type": "say", "text": "left"})
        assert await asyncio.to_thread(two.hear) == "left"
        assert await within(layer.receive(mine)) == {"type": "say", "text": "left"}
        await layer.send(names[1], {"type": "stop"})
        assert await asyncio.to_thread(two.end) == 0


def test_it_is_used_from_code_without_an_event_loop(folder: Path) -> None:
    layer = ChannelLayer(folder)
    for n in range(3):
        async_to_sync(layer.send)("jobs", {"n": n})
    assert [async_to_sync(layer.receive)("jobs")["n"] for _ in range(3)] == [0, 1, 2]
    assert layer._loops == {}
