"""A process beside a server is there again after whatever ends it, until the server ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import until
from server_process import Serve

from rlite_pubsub.server.companions.companion import Companion

RESTART_S = 1.0


@pytest.fixture
def companion() -> Iterator[Companion]:
    companion = Companion("test", "rlite_pubsub.no_such_module", RESTART_S, lambda *_: None)  # it ends by itself
    yield companion
    companion.end(0)


def has_died(companion: Companion) -> None:
    process = companion._process
    assert process is not None
    until(lambda: process.poll() is not None, "its end")


def test_one_that_the_system_can_t_begin_again_is_tried_later(
    companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    companion.begin({})
    has_died(companion)
    companion.cron(10.0)

    def refuse(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, "no process is left")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        companion.cron(10.0 + RESTART_S)
    assert companion.pid == 0
    companion.cron(10.0 + RESTART_S + RESTART_S / 2)
    assert companion.pid == 0, "it is not tried all the time"
    companion.cron(10.0 + 2 * RESTART_S)
    assert companion.pid != 0


def test_ctrl_c_ends_the_server_and_its_processes_without_a_traceback(serve: Serve, tmp_path: Path) -> None:
    flags = "--cold-store", "local", "--backup-to", str(tmp_path / "backup")
    server = serve(*flags, before_start=os.setpgrp)
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    until(lambda: len(children.read_text().split()) == 2, "its processes")
    pids = children.read_text().split()
    os.killpg(server.pid, signal.SIGINT)  # as a terminal does
    assert server.exit_code() == 0
    until(lambda: not any(Path("/proc", pid).exists() for pid in pids), "their end")
    assert "Traceback" not in server.log() + server.output() and "KeyboardInterrupt" not in server.output()


def test_one_that_was_ended_stays_so(companion: Companion) -> None:
    companion.begin({})
    has_died(companion)
    companion.cron(10.0)
    companion.end(0)
    companion.cron(20.0)
    assert companion.pid == 0
