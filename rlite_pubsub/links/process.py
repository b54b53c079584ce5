"""The process that has the links of a store.

    python -m rlite_pubsub.links.process     started, and ended, by a server (server/companions/linking.py)

The first line of its standard input says where the store is. Whoever starts it holds that input: when it ends, so does
this process. Of several that are started on one store one has the links; another one takes over when it is gone.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
from typing import Final

from rlite_pubsub.embedded.errors import StoreUnavailable
from rlite_pubsub.links.exchange import Exchange
from rlite_pubsub.links.failing import BREAKS
from rlite_pubsub.storage.commons.link_state import Lock
from rlite_pubsub.storage.errors import StoreError

log: Final = logging.getLogger("rlite_pubsub")

WAIT_SECONDS: Final = 0.05


async def serve(folder: str, waits: int) -> None:
    """Have the links, until what `waits` names has ended."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(waits, _read, waits, ended)
    lock = Lock(folder)
    try:
        while not ended.is_set() and not lock.take():
            await asyncio.sleep(WAIT_SECONDS)
        while not ended.is_set():
            try:
                await Exchange(folder).run(ended)
            except (*BREAKS, StoreError, StoreUnavailable) as failure:
                log.warning("The links of the store start over: %s", failure)
                await asyncio.sleep(WAIT_SECONDS)
    finally:
        loop.remove_reader(waits)
        lock.close()


def _read(waits: int, ended: asyncio.Event) -> None:
    if not os.read(waits, 65536):
        ended.set()
        asyncio.get_running_loop().remove_reader(waits)  # it stays readable


def main() -> int:
    """See above."""
    line = b""
    while not line.endswith(b"\n") and (piece := os.read(sys.stdin.fileno(), 1)):
        line += piece
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    words = json.loads(line)
    gc.freeze()  # what messages are made of has no cycles, and much of it is alive at once
    gc.set_threshold(50_000, 20, 50)
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(words["dir"], sys.stdin.fileno()))
    else:
        uvloop.run(serve(words["dir"], sys.stdin.fileno()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
