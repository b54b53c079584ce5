"""The port of a switchboard to the store itself.

What other processes of the store publish comes in runs, as it lies in this process's mailbox, and goes to them in
runs. Nobody else in this process receives messages, so what the port publishes does not come back to it. Only where
commands must do it (the channel is retained; somebody watches commands, or restricts them) is it heard again, and known
by what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.links.envelope import Envelope, run_of
from rlite_pubsub.links.held import Held
from rlite_pubsub.links.markers import verb_of
from rlite_pubsub.links.naming import Figures
from rlite_pubsub.links.outlet import Outlet, count_of
from rlite_pubsub.links.ports import DOOR, confirmed, door_of
from rlite_pubsub.pubsub.kinds import KINDS, SHARDS
from rlite_pubsub.pubsub.post import tails_of

if TYPE_CHECKING:
    from rlite_pubsub.links.link_wire import LinkWire, StoreStream
    from rlite_pubsub.links.switchboard import Switchboard
    from rlite_pubsub.links.wishes import Name
    from rlite_pubsub.storage.mail.letters import MessageRun

HELD_SECONDS: Final = 0.002
"""Between two looks whether other processes can be written to again."""


class HerePort:
    """The store, by a session of this process."""

    place = b"here"
    is_plain = False

    def __init__(self, switchboard: Switchboard, framed: Callable[[bytes], None]) -> None:
        """`framed` takes what comes to the store's door."""
        self.figures = Figures()
        self._switchboard = switchboard
        self._framed = framed
        self._held = Held()
        self._executed = Held()  # as `_held` will be, once all that was said is confirmed
        self._echoes: dict[tuple[int, bytes, bytes], int] = {}
        self._outlet = Outlet(self._write)
        self._wire: LinkWire | None = None
        self._stream: StoreStream | None = None
        self._runs: list[MessageRun] = []  # of other processes, in their order

    def begin(self, wire: LinkWire, stream: StoreStream) -> None:
        """It takes part by this wire, whose pushes go to `pushed`, until `end`."""
        self._wire, self._stream = wire, stream
        stream.line.host.hub.hand_runs_to(self._take)

    def end(self) -> None:
        """It takes part no longer."""
        if self._stream is not None:
            self._stream.line.host.hub.hand_runs_to(None)

    async def run(self) -> None:
        await self._outlet.run()

    def want(self, names: set[Name]) -> None:
        """Hear what is published to these in the store."""
        names = names | {(SHARDS.index, DOOR)}
        requests = self._held.want(names)
        if requests:
            assert self._wire is not None
            self._wire.subscribe(requests)
            self._executed = confirmed(names)

    @property
    def wants(self) -> frozenset[Name]:
        return self._held.asked

    def sends(self, kind: int, name: bytes) -> bool:
        return True

    def hears(self, kind: int, name: bytes) -> bool:
        return self._held.hears(kind, name)

    def deliver(self, messages: Envelope) -> None:
        self._outlet.put(messages)

    def say(self, nonce: bytes, frame: bytes) -> asyncio.Future[list[Any]]:
        """Send a frame to a guest."""
        assert self._wire is not None
        return self._wire.send([[b"SPUBLISH", door_of(nonce), frame]])

    # -- in

    def _take(self, run: MessageRun) -> None:
        """Another process has published this: in the middle of a turn, which nothing may be said in."""
        if not self._runs:
            asyncio.get_running_loop().call_soon(self._hand_on)
        self._runs.append(run)

    def _hand_on(self) -> None:
        runs, self._runs = self._runs, []
        for run in runs:
            if run.name == DOOR and run.kind == SHARDS.index:
                for frame in _payloads(run):
                    self._framed(frame)
            else:
                self.figures.messages_in += run.messages
                self._switchboard.enter(self, run.kind, run.name, run.messages, run.body)

    def pushed(self, pushes: list[list[Any]]) -> None:
        """This has come to the session: confirmations, and what this process has published itself."""
        for push in pushes:
            message = self._held.hear(push)
            if message is None:
                continue
            if message in self._echoes:
                _take_one(self._echoes, message)
                continue
            kind, channel, payload = message
            self.figures.messages_in += 1
            self._switchboard.enter(self, kind, channel, 1, run_of([b"%d\r\n%b" % (len(payload), payload)]))

    # -- out

    async def _write(self, batch: list[Envelope]) -> None:
        assert self._stream is not None
        host, session = self._stream.line.host, self._stream.line.session
        runs = [(KINDS[messages.kind], messages.channel, messages.tails) for messages in batch]
        done = host.publish_runs(session, runs, partial(self._refuse, count_of(batch)))
        self.figures.messages_out += count_of(batch)
        if done < len(batch):
            self._publish(batch[done:])
        await asyncio.sleep(0)
        while host.owes_processes:
            await asyncio.sleep(HELD_SECONDS)

    def _refuse(self, count: int, why: Exception) -> None:
        self.figures.refused += count

    def _publish(self, batch: list[Envelope]) -> None:
        """By commands."""
        assert self._wire is not None
        requests = []
        messages = []
        for each in batch:
            is_heard = self._executed.hears(each.kind, each.channel)
            for tail in each.tails:
                message = each.kind, each.channel, tail[tail.index(b"\n") + 1 :]
                messages.append(message)
                requests.append([verb_of(each.kind), *message[1:]])
                if is_heard:
                    self._echoes[message] = self._echoes.get(message, 0) + 1
        self._wire.send(requests).add_done_callback(partial(self._published, messages))

    def _published(self, messages: list[tuple[int, bytes, bytes]], done: asyncio.Future[list[Any]]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        for message, reply in zip(messages, done.result(), strict=True):
            if isinstance(reply, Exception):
                self.figures.refused += 1
                _take_one(self._echoes, message)


def _payloads(run: MessageRun) -> list[bytes]:
    return [tail[tail.index(b"\n") + 1 :] for tail in tails_of(run)]


def _take_one(counts: dict[tuple[int, bytes, bytes], int], key: tuple[int, bytes, bytes]) -> None:
    left = counts.get(key, 0) - 1
    if left > 0:
        counts[key] = left
    else:
        counts.pop(key, None)
