"""How links end: when they are told to, whatever happens in the same turn."""

from __future__ import annotations

import ast
import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError, ResponseError

import rlite_pubsub.links
from rlite_pubsub.links import process
from rlite_pubsub.links.carrier import Carrier, Leg
from rlite_pubsub.links.definition import Definition
from rlite_pubsub.links.failing import DOWN
from rlite_pubsub.links.link import Link
from rlite_pubsub.links.link_wire import LinkWire
from rlite_pubsub.links.switchboard import Switchboard
from rlite_pubsub.links.wishes import Wishes

TURNS = 50


class HalfOpen:
    """A connection to a server that stops answering: its last answer is given by `answer`."""

    def __init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self.answer: asyncio.Future[Any] | None = None

    async def send(self, requests: list[list[bytes]]) -> list[Any]:
        return [ResponseError("unknown command 'LINK'")]

    def ask(self, *request: bytes) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if request[0] == b"PING":
            self.answer = future
        else:
            future.set_result(b"run_id:1\r\n")
        return future

    async def close(self) -> None:
        pass


class HalfOpenTarget:
    """Opens such connections."""

    shown = "redis://h"
    is_cluster = False

    def __init__(self) -> None:
        self.opened: list[HalfOpen] = []

    async def open(self, *_: object, **__: object) -> HalfOpen:
        self.opened.append(HalfOpen())
        return self.opened[-1]


class Endless:
    """Topics that are being brought over."""

    carriers: dict[bytes, Any] = {}

    async def run(self, *_: object, **__: object) -> None:
        await asyncio.Event().wait()


def test_a_link_that_is_told_to_end_in_the_turn_in_which_its_connection_breaks_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlite_pubsub.links.link.SIGN_SECONDS", 0)
    target = HalfOpenTarget()
    monkeypatch.setattr(Definition, "target", target)

    async def run() -> None:
        definition = Definition("central", "redis://h", topics=("orders",), direction="out")
        link = Link(definition, Switchboard(1), Wishes(1), lambda: None, Endless())  # type: ignore[arg-type]
        task = asyncio.ensure_future(link.run())
        while not (target.opened and target.opened[0].answer):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        target.opened[0].answer.set_exception(ConnectionError("broken"))
        task.cancel()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert task.done(), "the cancellation was lost"

    asyncio.run(run())


def test_no_part_of_a_link_waits_by_wait_for_which_may_lose_a_cancellation() -> None:
    folder = Path(rlite_pubsub.links.__file__).parent
    for file in folder.glob("*.py"):
        names = {node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}
        assert "wait_for" not in names, file.name


def test_a_process_whose_server_is_gone_sleeps_until_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        def __init__(self, folder: str) -> None:
            pass

        async def run(self, ended: asyncio.Event) -> None:
            await ended.wait()
            for _ in range(TURNS):
                await asyncio.sleep(0)

    reads = []
    read = os.read

    def counted(descriptor: int, size: int) -> bytes:
        if descriptor == reading:
            reads.append(size)
        return read(descriptor, size)

    reading, writing = os.pipe()
    os.close(writing)
    monkeypatch.setattr(process, "Exchange", Slow)
    monkeypatch.setattr(os, "read", counted)
    asyncio.run(process.serve(str(tmp_path), reading))
    os.close(reading)
    assert len(reads) == 1


def test_a_fault_of_ours_is_told_and_ends_no_topic(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: list[str] = []

    async def faulty() -> LinkWire:
        attempts.append(carrier.state)
        raise TypeError("a fault of ours")

    monkeypatch.setattr("rlite_pubsub.links.carrier.RETRY_SECONDS", (0.0,))
    carrier = Carrier(Leg(b"t", b"t", b"here", b"there", True, True, False), faulty, faulty, b"field", "0-0")

    async def story() -> None:
        running = asyncio.ensure_future(carrier.run())
        while len(attempts) < 3:
            await asyncio.sleep(0)
        assert not running.done()
        running.cancel()

    asyncio.run(story())
    assert (carrier.state, carrier.error) == (DOWN, "a fault of ours")
    assert attempts[1:] == [DOWN, DOWN]
    assert caplog.text.count("Traceback") == 1, "with its trace, once"


class Faulty:
    """Topics whose bringing over meets a fault of ours."""

    carriers: dict[bytes, Any] = {}

    async def run(self, *_: object, **__: object) -> None:
        raise TypeError("a fault of ours")


def test_a_fault_of_ours_is_told_and_ends_no_link(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rlite_pubsub.links.link.RETRY_SECONDS", (0.0,))
    target = HalfOpenTarget()
    monkeypatch.setattr(Definition, "target", target)

    async def story() -> None:
        definition = Definition("central", "redis://h", topics=("orders",), direction="out")
        link = Link(definition, Switchboard(1), Wishes(1), lambda: None, Faulty())  # type: ignore[arg-type]
        running = asyncio.ensure_future(link.run())
        while len(target.opened) < 3:
            await asyncio.sleep(0)
        assert not running.done()
        assert link.failures >= 2
        running.cancel()

    asyncio.run(story())
    assert "Unexpected failure of the link central" in caplog.text
    assert "TypeError: a fault of ours" in caplog.text
