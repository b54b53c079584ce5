"""Programs without a server, under uvloop."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.embedded.loop_line import BellWatch, LoopLine

uvloop = pytest.importorskip("uvloop")


def test_a_reader_waits_beside_a_timer_that_is_due_at_once(folder: Path) -> None:
    """uvloop's handle of such a timer does not tell when it is due."""

    async def wait_twice() -> None:
        line = LoopLine(str(folder))
        line.host.timers.add(0.0, lambda: None)
        watch = BellWatch.of(line.host)
        watch.begin_wait()
        watch.begin_wait()
        line.close()

    uvloop.run(wait_twice())
