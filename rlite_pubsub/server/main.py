"""The server process: event loop, signals, and the two ends of its life."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import rlite_pubsub.server.supervision as supervision
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.server.event_loop import new_event_loop
from rlite_pubsub.server.listening import StartupError
from rlite_pubsub.server.node import Node, settle_memory
from rlite_pubsub.storage.errors import damage_in

__all__ = ["StartupError", "run"]

log = logging.getLogger("rlite_pubsub")


def run(settings: Settings, config_file: str | None) -> int:
    """Serve until told to stop. Raises StartupError."""
    loop = new_event_loop(speaks_http=settings.asks_for_http)
    try:
        return loop.run_until_complete(_serve(settings, config_file))
    finally:
        loop.close()


async def _serve(settings: Settings, config_file: str | None) -> int:
    loop = asyncio.get_running_loop()
    try:
        node = Node(settings, loop, config_file)
        node.start()
    except Exception as failure:
        damage = damage_in(failure)
        if damage is None:
            raise
        raise StartupError(str(damage)) from failure
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, _on_signal, node, signal_number)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    settle_memory()
    log.warning("Server initialized, pid %d", os.getpid())
    log.info("Ready to accept connections on port %s", node.listening.ports or "0")
    supervision.ready(settings)
    await node.stopped.wait()
    supervision.stopping(settings)
    await node.stop_gateway()
    node.stop()
    log.warning("Bye bye")
    return 0


def _on_signal(node: Node, signal_number: int) -> None:
    log.warning("Received %s scheduling shutdown...", signal.Signals(signal_number).name)
    node.stop_soon()
