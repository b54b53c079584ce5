"""Open streams, without a server: what comes while they look away, and that others have their turn between them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import MutableMapping
from typing import Any

import pytest
from bus import Bus
from patience import PATIENCE_S

from rlite_pubsub.gateway.events.event_log import PAGE_BYTES
from rlite_pubsub.gateway.streams.streams import Streams
from rlite_pubsub.gateway.streams.waves import READING, ROUND, Waves

STREAMS = 320


class Rounds:
    """Counts the rounds of the event loop."""

    def __init__(self) -> None:
        self.number = 0
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self.number += 1
        self._handle = self._loop.call_soon(self._next)

    def stop(self) -> None:
        self._handle.cancel()


async def silence() -> MutableMapping[str, Any]:
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


class Crowd:
    """Readers of one topic whose sockets take everything, and in which round each was sent something."""

    def __init__(self, streams: Streams, rounds: Rounds, count: int) -> None:
        self.streams = streams
        self.rounds = rounds
        self.said = [b""] * count
        self.told: list[int] = []  # rounds
        self.serving = [asyncio.ensure_future(self._serve(number)) for number in range(count)]

    async def _serve(self, number: int) -> None:
        async def send(message: MutableMapping[str, Any]) -> None:
            if data := message.get("body", b""):
                self.said[number] += data
                self.told.append(self.rounds.number)

        place = self.streams.start(None)
        await self.streams.serve(place, None, [], silence, send)

    async def all_have(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not all(data in said for said in self.said):
                await asyncio.sleep(0)

    async def end(self) -> None:
        self.streams.close()
        await asyncio.gather(*self.serving)
        self.rounds.stop()


async def test_event_that_comes_while_a_page_is_being_sent_is_not_waited_for(bus: Bus) -> None:
    streams = Streams(bus.log, lambda: 1000.0, lambda: 1)
    bus.append(["first"])
    sent: list[bytes] = []
    done = asyncio.Event()

    async def send(message: MutableMapping[str, Any]) -> None:
        data = message.get("body", b"")
        sent.append(data)
        if b"event: first" in data:
            bus.append(["second"])
            streams.note()
        if b"event: second" in data:
            done.set()

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    serving = asyncio.ensure_future(streams.serve(streams.start(None), None, [], receive, send))
    await asyncio.wait_for(done.wait(), PATIENCE_S)
    streams.close()
    await serving
    assert streams.open == 0 and sent[-1] == b""


async def test_publish_that_wakes_many_streams_tells_a_part_of_them_in_each_round(bus: Bus) -> None:
    bus.append(["first"])
    crowd = Crowd(Streams(bus.log, lambda: 1000.0, lambda: 1), Rounds(), STREAMS)
    await crowd.all_have(b"event: first")
    crowd.told.clear()
    bus.append(["second"])
    crowd.streams.note()
    await crowd.all_have(b"event: second")
    assert len(crowd.told) == STREAMS
    assert max(Counter(crowd.told).values()) <= ROUND
    await crowd.end()


async def test_streams_that_are_silent_for_long_say_that_they_live_by_and_by(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlite_pubsub.gateway.streams.streams._SILENCE_CHECK_SECONDS", 0.01)
    crowd = Crowd(Streams(bus.log, lambda: 0.01, lambda: 1), Rounds(), STREAMS)
    await crowd.all_have(b":\n\n")
    await crowd.end()
    del crowd.told[:STREAMS]  # the prefaces are said at once
    assert max(Counter(crowd.told).values()) <= ROUND


async def test_readers_who_come_back_replay_a_few_pages_in_each_round(bus: Bus) -> None:
    bus.append(["old"] * 400, b"x" * 1000)
    reads: list[int] = []
    rounds = Rounds()
    page = bus.log.page

    def counted(*place: Any) -> Any:
        reads.append(rounds.number)
        return page(*place)

    bus.log.page = counted  # type: ignore[method-assign]
    crowd = Crowd(Streams(bus.log, lambda: 1000.0, lambda: 1), rounds, STREAMS)
    await crowd.all_have(bus.expected()[-1].encode())
    await crowd.end()
    assert len(reads) > STREAMS * 400 * 1000 / PAGE_BYTES
    assert max(Counter(reads).values()) <= ROUND // READING


async def test_who_asks_first_has_the_first_turn_and_all_have_one() -> None:
    waves = Waves()
    order: list[int] = []

    async def work(number: int) -> None:
        await waves.turn()
        order.append(number)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*[work(number) for number in range(100)])
    assert order == list(range(100))


async def test_who_is_gone_takes_nobodys_turn() -> None:
    waves, rounds = Waves(), Rounds()
    many = 10 * ROUND
    gone = [asyncio.ensure_future(waves.turn()) for _ in range(many)]
    await asyncio.sleep(0)
    for each in gone:
        each.cancel()
    before = rounds.number
    await asyncio.wait_for(waves.turn(), PATIENCE_S)
    assert rounds.number - before < many * READING // ROUND / 2
    rounds.stop()
