"""The sharded channels of a link to a cluster: each is heard, and spoken to, at the node that has its slot.

A node that is down, or no longer has a slot, takes nothing from the others: its names are placed again, by what the
cluster says then, until they are where they belong. Each slot has a marker channel of its own (markers.py), for a
transaction is one slot's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.links.failing import BREAKS, DOWN, RETRY_SECONDS, SIGN_SECONDS, SILENCE_SECONDS, UP
from rlite_pubsub.links.markers import Came, MarkerReader, transaction
from rlite_pubsub.links.outlet import Outlet, count_of
from rlite_pubsub.links.target import SLOTS, slot_of
from rlite_pubsub.pubsub.kinds import SHARDS

if TYPE_CHECKING:
    from rlite_pubsub.links.envelope import Envelope
    from rlite_pubsub.links.link_wire import ServerWire
    from rlite_pubsub.links.naming import Figures, Naming
    from rlite_pubsub.links.target import Address, Target

log: Final = logging.getLogger("rlite_pubsub")

_MARKERS: Final = b"__links__:markers:"
_MOST_ATTEMPTS: Final = 6
_MISPLACED: Final = ("MOVED", "EXECABORT", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "LOADING")


class _Node:
    """A node and what is heard there."""

    def __init__(self, hearing: MarkerReader, wire: ServerWire) -> None:
        self.hearing = hearing
        self.wire = wire


class ClusterShards:
    """`run` is its task."""

    def __init__(
        self,
        target: Target,
        name: str,
        naming: Naming,
        came: Came,
        figures: Figures,
        see: Callable[[str, str], None],
    ) -> None:
        """`name` of its connections; `see` takes (state, error)."""
        self.outlet = Outlet(self._write)
        self._target = target
        self._name = name
        self._naming = naming
        self._came = came
        self._figures = figures
        self._see = see
        self._wanted: frozenset[bytes] = frozenset()
        self._owners: dict[int, Address] = {}
        self._nodes: dict[Address, _Node] = {}
        self._speaking: dict[Address, ServerWire] = {}
        self._news = asyncio.Event()
        self._asking = asyncio.Lock()  # one at a time asks who has which slot, or opens a wire to speak
        self._markers = _marker_names()
        self._marker_set = frozenset(self._markers)
        self._bytes_in = self._bytes_out = 0

    @property
    def bytes_in(self) -> int:
        return self._bytes_in + sum(wire.stream.bytes_in for wire in self._wires())

    @property
    def bytes_out(self) -> int:
        return self._bytes_out + sum(wire.stream.bytes_out for wire in self._wires())

    def want(self, names: Iterable[bytes]) -> None:
        """Hear these, by their names there."""
        found = frozenset(names)
        if found != self._wanted:
            self._wanted = found
            self._news.set()

    def hears(self, name: bytes) -> bool:
        """Return whether a name is heard there."""
        return any(node.hearing.held.hears(SHARDS.index, name) for node in self._nodes.values())

    async def run(self) -> None:
        """Carry sharded channels until cancelled."""
        outlet = asyncio.ensure_future(self.outlet.run())
        try:
            await self._place_again_and_again()
        finally:
            outlet.cancel()
            await asyncio.wait([outlet])
            for wire in self._wires():
                await self._close(wire)
            self._nodes.clear()
            self._speaking.clear()

    def _wires(self) -> list[ServerWire]:
        return [node.wire for node in self._nodes.values()] + list(self._speaking.values())

    async def _close(self, wire: ServerWire) -> None:
        self._bytes_in += wire.stream.bytes_in
        self._bytes_out += wire.stream.bytes_out
        await wire.close()

    # -- hearing

    async def _place_again_and_again(self) -> None:
        attempt = 0
        while True:
            self._news.clear()
            failure = await self._drop_ended()
            try:
                if failure is not None or not self._owners:
                    self._owners = await self._target.owners()
                await self._place()
            except BREAKS as error:
                failure = error
            if failure is None:
                attempt = 0
                self._see(UP, "")
                await self._wait(SIGN_SECONDS)
                await self._hear_signs()
                continue
            self._owners = {}
            self._see(DOWN, str(failure) or type(failure).__name__)
            await self._wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            attempt += 1

    async def _wait(self, seconds: float | None) -> None:
        """Wait for news: of names, of a slot that has moved, of a wire that has ended."""
        ended = [node.wire.ended for node in self._nodes.values()]
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait([news, *ended], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()

    async def _hear_signs(self) -> None:
        """Ask each node for a sign of life; one that says nothing has ended."""
        for node in self._nodes.values():
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    await node.wire.ask(b"PING")
            except BREAKS:
                node.wire.ended.cancel()

    async def _drop_ended(self) -> BaseException | None:
        failure: BaseException | None = None
        for address, node in list(self._nodes.items()):
            if node.wire.ended.done():
                is_silent = node.wire.ended.cancelled()
                failure = TimeoutError("a node does not answer") if is_silent else node.wire.ended.exception()
                del self._nodes[address]
                await self._close(node.wire)
        return failure

    async def _place(self) -> None:
        """Every name at its slot's owner, and nowhere else. Raises what the last node that fails does, after the
        others."""
        names: dict[Address, set[bytes]] = {address: set() for address in self._nodes}
        for name in self._wanted:
            slot = slot_of(name)
            owner = self._owners.get(slot)
            if owner is None:
                raise ConnectionError(f"the cluster says of slot {slot} nobody's")
            names.setdefault(owner, set()).update((name, self._markers[slot]))
        failure: BaseException | None = None
        for address, found in names.items():
            try:
                node = self._nodes.get(address) or await self._open(address)
                node.wire.subscribe(node.hearing.held.want({(SHARDS.index, name) for name in found}))
            except BREAKS as error:
                failure = error
        if failure is not None:
            raise failure

    async def _open(self, address: Address) -> _Node:
        hearing = MarkerReader(self._came, self._marker_set.__contains__)

        def pushed(pushes: list[list[Any]]) -> None:
            hearing.pushed(pushes)
            for push in pushes:
                if push[0] == SHARDS.unsubscribed and (SHARDS.index, push[1]) in hearing.held.asked:
                    self._lose(hearing, push[1])

        wire = await self._target.open(pushed, name=self._name, at=address)
        node = self._nodes[address] = _Node(hearing, wire)
        return node

    def _lose(self, hearing: MarkerReader, name: bytes) -> None:
        """Note that the node no longer has this name's slot."""
        hearing.held.asked -= {(SHARDS.index, name)}
        self._owners = {}
        self._news.set()

    # -- speaking

    async def _write(self, batch: list[Envelope]) -> None:
        by_slot: dict[int, list[Envelope]] = {}
        for messages in batch:
            by_slot.setdefault(slot_of(self._naming.there(messages.channel)), []).append(messages)
        await asyncio.gather(*(self._say(slot, part) for slot, part in by_slot.items()))

    async def _say(self, slot: int, batch: list[Envelope]) -> None:
        """Publish at the slot's present owner; a batch refused because the slot has moved is tried again there."""
        there = [messages._replace(channel=self._naming.there(messages.channel)) for messages in batch]
        requests, count = transaction(self._markers[slot], there)
        for attempt in range(_MOST_ATTEMPTS):
            wire: ServerWire | None = None
            try:
                wire = await self._speaker(slot)
                async with asyncio.timeout(SILENCE_SECONDS):
                    replies = await wire.send_packed(requests, count)
            except (*BREAKS, KeyError) as failure:
                log.debug("A slot's node can't be reached: %s", failure)
                if wire is not None:
                    wire.ended.cancel()
                    self._figures.dropped += count_of(batch)  # whether it was said, nobody knows: not twice
                    return
            else:
                refusal = next((each for each in replies if isinstance(each, Exception)), None)
                if refusal is None:
                    self._figures.messages_out += count_of(batch)
                    return
                if not str(refusal).startswith(_MISPLACED):
                    self._figures.refused += count_of(batch)
                    return
            self._owners = {}
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
        self._figures.dropped += count_of(batch)

    async def _speaker(self, slot: int) -> ServerWire:
        """Raises KeyError where nobody has the slot."""
        async with self._asking:
            if not self._owners:
                self._owners = await self._target.owners()
            owner = self._owners[slot]
            wire = self._speaking.get(owner)
            if wire is not None and wire.ended.done():
                del self._speaking[owner]
                await self._close(wire)
                wire = None
            if wire is None:
                wire = self._speaking[owner] = await self._target.open(name=self._name, at=owner)
            return wire


def _marker_names() -> list[bytes]:
    """Return a name in each slot."""
    found: dict[int, bytes] = {}
    number = 0
    while len(found) < SLOTS:
        name = _MARKERS + b"%d" % number
        found.setdefault(slot_of(name), name)
        number += 1
    return [found[slot] for slot in range(SLOTS)]
