"""The topics of one link: which there are, and who brings each of them over.

A topic goes out, from the store to the link's target, comes in, the other way round, or both; one that a pattern names
is found by a walk over the keys, again and again, for at most a small share of the time.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.links.carrier import Carrier, Leg
from rlite_pubsub.links.link_wire import LinkWire, StoreStream
from rlite_pubsub.links.naming import Naming
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.pubsub.kinds import PATTERNS

if TYPE_CHECKING:
    from rlite_pubsub.links.definition import Definition
    from rlite_pubsub.links.target import Target

LOOK_SECONDS: Final = 1.0
LOOK_SHARE: Final = 20
"""A walk over all keys is done again after so many times as long as it took."""
_WALK_AT_ONCE: Final = b"500"
EPHEMERAL: Final = b"#ephemeral"


class Topics:
    """`run` is its task."""

    def __init__(self, definition: Definition, target: Target, folder: str, own: bytes) -> None:
        """`own`: this store's id."""
        self.carriers: dict[tuple[bool, bytes], Carrier] = {}
        """By whether it goes out, and its name at the source."""
        self._definition = definition
        self._target = target
        self._folder = folder
        self._own = own
        self._naming = Naming(definition.prefix.encode("latin-1"))
        self._ways = {"in": (False,), "out": (True,)}.get(definition.direction, (True, False))
        self._globs = [Glob(pattern.encode("latin-1")) for pattern in definition.topics]
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, control: LinkWire, far: bytes, *, is_store: bool) -> None:
        """Carry topics until cancelled or `control`, a wire to the target, breaks. `far` names the store, or the
        server, there."""
        if far == self._own:
            raise OSError("it leads to this store itself")
        here = await self._here()
        try:
            while True:
                began = time.monotonic()
                for is_out in self._ways:
                    for name in await self._found(here if is_out else control, is_out):
                        self._begin(name, far, is_out, is_store or not is_out)
                await asyncio.sleep(max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - began)))
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            self._tasks = []
            await here.close()

    async def _found(self, where: LinkWire, is_out: bool) -> list[bytes]:
        """Return their names at the source."""
        naming, found = self._naming, []
        for glob in self._globs:
            if glob.exact:
                found.append(glob.literal_prefix if is_out else naming.there(glob.literal_prefix))
            elif is_out:
                found += await _walk(where, glob.pattern)
            else:
                _, pattern = naming.wanted_there((PATTERNS.index, glob.pattern))
                found += await (self._walk_nodes(pattern) if self._target.is_cluster else _walk(where, pattern))
        return [name for name in found if not name.endswith(EPHEMERAL)]

    async def _walk_nodes(self, pattern: bytes) -> list[bytes]:
        """Return all topics of a cluster whose names match."""
        found = []
        for address in sorted(set((await self._target.owners()).values())):
            wire = await self._target.open(name=f"link:{self._definition.name}", at=address)
            try:
                found += await _walk(wire, pattern)
            finally:
                await wire.close()
        return found

    def _begin(self, name: bytes, far: bytes, is_out: bool, is_to_store: bool) -> None:
        """`name` at the source."""
        carrier = self.carriers.get((is_out, name))
        if carrier is None:
            there = self._naming.there(name) if is_out else self._naming.here(name)
            if there is None:
                return
            words = self._definition
            at_far = there if is_out else name

            async def server() -> LinkWire:
                return await self._target.open(key=at_far, name=f"link:{words.name}")

            ends = (self._own, far) if is_out else (far, self._own)
            leg = Leg(name, there, *ends, is_out, words.direction != "both", is_to_store)
            source, target = (self._here, server) if is_out else (server, self._here)
            field = b"%b/%b" % (self._own, words.name.encode("latin-1"))
            carrier = self.carriers[is_out, name] = Carrier(leg, source, target, field, words.since)
        task_name = f"{is_out}:{name.hex()}"
        if not any(task.get_name() == task_name for task in self._tasks):
            self._tasks.append(asyncio.create_task(carrier.run(), name=task_name))

    async def _here(self) -> LinkWire:
        wire = LinkWire(StoreStream(self._folder))
        await wire.ask(b"HELLO", b"3", b"SETNAME", b"link:" + self._definition.name.encode("latin-1"))
        return wire


async def _walk(wire: LinkWire, pattern: bytes) -> list[bytes]:
    """Return all topics whose names match."""
    cursor, found = b"0", []
    while True:
        reply: Any = await wire.ask(
            b"SCAN", cursor, b"MATCH", pattern, b"COUNT", _WALK_AT_ONCE, b"TYPE", b"stream"
        )
        cursor, names = reply
        found += names
        if cursor == b"0":
            return found
        await asyncio.sleep(0)
