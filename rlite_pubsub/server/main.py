"""The server process: event loop, signals, and the two ends of its life."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import rlite_pubsub.server.supervision as supervision
from rlite_pubsub.engine.doors import Doors, handed_over
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.server.event_loop import new_event_loop
from rlite_pubsub.server.listening import StartupError
from rlite_pubsub.server.node import Node, settle_memory
from rlite_pubsub.storage import proving
from rlite_pubsub.storage.errors import damage_in

if TYPE_CHECKING:
    from rlite_pubsub.engine.workers.fellows import Fellows
    from rlite_pubsub.server.workers.place import WorkerPlace

__all__ = ["StartupError", "run"]

log = logging.getLogger("rlite_pubsub")


def run(settings: Settings, config_file: str | None, announce: Callable[[Node], None]) -> int:
    """Serve until told to stop, on sockets that were handed over where there are any; in as many processes as the
    settings say. `announce` tells who started it that it listens. Raises StartupError."""
    handed = handed_over(os.environ, os.getpid())
    if settings["workers"] == 1:
        return _run(settings, config_file, announce, Doors(handed), None)
    from rlite_pubsub.server.workers.supervisor import Supervisor

    def serve(sockets: Sequence[socket.socket], place: WorkerPlace) -> int:
        try:
            return _run(settings, config_file, announce, Doors(sockets, are_shared=True), place)
        except StartupError as error:
            error.log()
            return 1

    return Supervisor(settings, serve, handed).run()


def _run(
    settings: Settings,
    config_file: str | None,
    announce: Callable[[Node], None],
    doors: Doors,
    place: WorkerPlace | None,
) -> int:
    loop = new_event_loop(speaks_http=settings.asks_for_http)
    try:
        return loop.run_until_complete(_serve(settings, config_file, announce, doors, place))
    finally:
        loop.close()


async def _serve(
    settings: Settings,
    config_file: str | None,
    announce: Callable[[Node], None],
    doors: Doors,
    place: WorkerPlace | None,
) -> int:
    loop = asyncio.get_running_loop()
    folder = Path(os.fsdecode(settings["dir"]))
    crashes = _noting_crashes(folder)
    try:
        fellows = _fellows_of(place)
        node = Node(settings, loop, config_file, doors=doors, fellows=fellows)
        if place is not None and place.is_replacement and fellows is not None:
            fellows.take_settings_over(settings)
        node.start()
    except Exception as failure:
        damage = damage_in(failure)
        if damage is None:
            raise
        raise StartupError(str(damage)) from failure
    crashes = crashes or _noting_crashes(folder)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, _on_signal, node, signal_number)
    loop.add_signal_handler(signal.SIGHUP, _on_hangup, settings)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    settle_memory()
    log.warning("Server initialized, pid %d", os.getpid())
    if place is None or place.number == 0:
        announce(node)
    log.info("Ready to accept connections on port %s", node.listening.ports or "0")
    supervision.ready(settings)
    if place is not None:
        place.begin(loop, node.stop_soon)
    watchdog = supervision.Watchdog(settings, loop)
    await node.stopped.wait()
    watchdog.close()
    supervision.stopping(settings)
    await node.stop_gateway()
    node.stop()
    if crashes is not None:
        faulthandler.disable()
        crashes.close()
    log.warning("Bye bye")
    return 0


def _noting_crashes(folder: Path) -> IO[bytes] | None:
    """What ends the process, if it is not Python, is noted from now on; None where there is no store yet."""
    try:
        return proving.note_crashes(folder)
    except FileNotFoundError:
        return None
    except OSError as failure:
        log.debug("Can't note what may end the server: %s", failure)
        return None


def _fellows_of(place: WorkerPlace | None) -> Fellows | None:
    if place is None:
        return None
    from rlite_pubsub.engine.workers.fellows import Fellows

    return Fellows(place.number, place.paths)


def _on_signal(node: Node, signal_number: int) -> None:
    log.warning("Received %s scheduling shutdown...", signal.Signals(signal_number).name)
    node.stop_soon()


def _on_hangup(settings: Settings) -> None:
    """A log file is opened for each line: this is the first one in whatever stands at its path now."""
    supervision.reloading(settings)
    log.warning("Received SIGHUP, the log continues in %s", os.fsdecode(settings["logfile"]) or "the standard output")
    supervision.reloaded(settings)
