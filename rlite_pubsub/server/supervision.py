"""Supervision of the server process: systemd (`supervised`), a pidfile, or none (`daemonize`).

The pidfile is written once the server listens, so that a second server which finds the port in use leaves the first
one's alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from rlite_pubsub.engine.settings.settings import Settings

log = logging.getLogger("rlite_pubsub")


def is_systemd(settings: Settings) -> bool:
    """Return whether systemd waits for the message that the server is ready."""
    return settings["supervised"] in (b"systemd", b"auto") and bool(os.environ.get("NOTIFY_SOCKET"))


def daemonize(settings: Settings) -> None:
    """Go to the background if that is wanted and nobody supervises. Only before there are threads and event loops."""
    if not settings["daemonize"] or is_systemd(settings):
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)


def ready(settings: Settings) -> None:
    """The server listens: write the pidfile, tell systemd."""
    mode = settings["supervised"]
    if mode == b"upstart":
        log.warning("supervised upstart is not supported: ignored")
    elif mode == b"systemd" and not is_systemd(settings):
        log.warning("systemd supervision requested, but NOTIFY_SOCKET is not set")
    path = os.fsdecode(settings["pidfile"])
    if path:
        try:
            Path(path).write_text(f"{os.getpid()}\n")
        except OSError as error:
            log.warning("Could not write the pidfile %s: %s", path, error.strerror)
    if is_systemd(settings):
        _notify(b"STATUS=Ready to accept connections\nREADY=1\n")


def reloading(settings: Settings) -> None:
    """Report that the configuration is being reloaded."""
    if is_systemd(settings):
        _notify(b"RELOADING=1\nMONOTONIC_USEC=%d\n" % (time.monotonic_ns() // 1000))


def reloaded(settings: Settings) -> None:
    """Report that it was reloaded."""
    if is_systemd(settings):
        _notify(b"READY=1\n")


class Watchdog:
    """Tells systemd that the event loop still turns, twice as often as it wants to hear it (WatchdogSec=)."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        """Does nothing where nobody waits for it."""
        self._loop = loop
        self._every_s = watchdog_s(os.environ, os.getpid()) / 2 if is_systemd(settings) else 0.0
        self._timer: asyncio.TimerHandle | None = None
        if self._every_s:
            self._tell()

    def close(self) -> None:
        """The loop is about to end."""
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        _notify(b"WATCHDOG=1\n")
        self._timer = self._loop.call_later(self._every_s, self._tell)


def feed_watchdog(settings: Settings) -> None:
    """Tell systemd, if it supervises, that the server is alive."""
    if is_systemd(settings):
        _notify(b"WATCHDOG=1\n")


def watchdog_s(environment: Mapping[str, str], pid: int) -> float:
    """After this many seconds of silence systemd takes this process for dead; 0: never."""
    if environment.get("WATCHDOG_PID", str(pid)) != str(pid):
        return 0.0
    said = environment.get("WATCHDOG_USEC", "")
    return int(said) / 1e6 if said.isdecimal() else 0.0


def stopping(settings: Settings) -> None:
    """The server is about to stop."""
    if is_systemd(settings):
        _notify(b"STOPPING=1\n")


def stopped(settings: Settings) -> None:
    """The server has stopped: its pidfile goes, another's stays."""
    path = os.fsdecode(settings["pidfile"])
    if not path:
        return
    try:
        if Path(path).read_text() == f"{os.getpid()}\n":
            os.unlink(path)
            log.info("Removing the pid file.")
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("Could not remove the pidfile %s: %s", path, error.strerror)


def _notify(state: bytes) -> None:
    """sd_notify: one datagram; a leading @ is Linux's abstract name space."""
    address = os.environ["NOTIFY_SOCKET"]
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state, address)
    except OSError as error:
        log.warning("systemd could not be notified: %s", error.strerror)
