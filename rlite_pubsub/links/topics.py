"""The topics of one link: which there are, and who brings each of them over.

A topic goes out, from the store to the link's target, or comes in, the other way round; one that a pattern names is
found by a walk over the keys, again and again, for at most a small share of the time.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.links.carrier import Carrier
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
        self.carriers: dict[bytes, Carrier] = {}
        self._definition = definition
        self._target = target
        self._folder = folder
        self._own = own
        self._naming = Naming(definition.prefix.encode("latin-1"))
        self._is_out = definition.direction != "in"
        self._globs = [Glob(pattern.encode("latin-1")) for pattern in definition.topics]
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, control: LinkWire, passes: bytes) -> None:
        """Until cancelled, or `control`, a wire to the target, breaks. `passes`: which store, or server, is there."""
        if passes == self._own:
            raise OSError("it leads to this store itself")
        here = await self._here()
        try:
            while True:
                began = time.monotonic()
                for name in await self._found(here if self._is_out else control):
                    self._begin(name, passes)
                await asyncio.sleep(max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - began)))
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            self._tasks = []
            await here.close()

    async def _found(self, where: LinkWire) -> list[bytes]:
        """Their names at the source."""
        naming, found = self._naming, []
        for glob in self._globs:
            if glob.exact:
                found.append(glob.literal_prefix if self._is_out else naming.there(glob.literal_prefix))
            elif self._is_out or not self._target.is_cluster:
                pattern = glob.pattern if self._is_out else naming.wanted_there((PATTERNS.index, glob.pattern))[1]
                found += await _walk(where, pattern)
            else:
                raise OSError("topics that come in from a cluster are named one by one, not by patterns")
        return [name for name in found if not (self._is_out and name.endswith(EPHEMERAL))]

    def _begin(self, name: bytes, passes: bytes) -> None:
        """`name` at the source."""
        carrier = self.carriers.get(name)
        if carrier is None:
            there: bytes | None = self._naming.there(name) if self._is_out else self._naming.here(name)
            if there is None:
                return
            at_target = name if not self._is_out else there

            async def server() -> LinkWire:
                return await self._target.open(key=at_target, name=f"link:{self._definition.name}")

            source, target = (self._here, server) if self._is_out else (server, self._here)
            words = self._definition
            carrier = self.carriers[name] = Carrier(
                name, there, source, target, self._own, words.name, words.since, b"" if self._is_out else passes
            )
        if not any(task.get_name() == carrier.name.hex() for task in self._tasks):
            self._tasks.append(asyncio.create_task(carrier.run(), name=carrier.name.hex()))

    async def _here(self) -> LinkWire:
        wire = LinkWire(StoreStream(self._folder))
        await wire.ask(b"HELLO", b"3", b"SETNAME", b"link:" + self._definition.name.encode("latin-1"))
        return wire


async def _walk(wire: LinkWire, pattern: bytes) -> list[bytes]:
    """All topics whose names match."""
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
