"""A worker that the system can't start at the moment is started later; the others serve on."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest
from ports import free_port

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.server.workers.supervisor import FIRST_PAUSE_S, Supervisor

NO_PROCESS = 1 << 30


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    settings = Settings()
    settings.set("port", [b"%d" % free_port()])
    settings.adopt("workers", 2)
    supervisor = Supervisor(settings, lambda *_: 0, [])
    yield supervisor
    supervisor._sockets.close()
    for descriptor in (
        supervisor._told,
        supervisor._tells,
        supervisor._life,
        supervisor._alive,
        supervisor._woken,
        supervisor._wakes,
    ):
        os.close(descriptor)


def test_a_worker_is_started_once_there_is_a_process_for_it(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "no process is left")

    supervisor._every_s = 0.0
    supervisor._began[1] = 0.0
    supervisor._replace(1, NO_PROCESS, 1)
    monkeypatch.setattr("time.monotonic", lambda: supervisor._due[1])
    monkeypatch.setattr(os, "fork", refuse)
    before = supervisor._due[1]
    supervisor._go_on()
    assert supervisor._due[1] >= before + FIRST_PAUSE_S and not supervisor._workers
    monkeypatch.setattr(os, "fork", lambda: NO_PROCESS)
    supervisor._go_on()
    assert not supervisor._due and supervisor._workers == {NO_PROCESS: 1}
