"""From starting the process to its first PONG."""

from __future__ import annotations

from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target


class Start(Shape):
    """Every server measures its own start; here it is only read off."""

    name = "start"
    sentence = "from starting the process to the first PONG, store folder empty"
    figures = (Figure("time", "ms", higher_is_better=False, target=Target(200.0, of_ratio=False)),)
    warms_up = False

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        return (Reading(server.first_pong_s * 1e3),)


SHAPES: tuple[Shape, ...] = (Start(),)
