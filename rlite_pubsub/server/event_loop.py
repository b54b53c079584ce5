"""The event loop of a server.

Turns (turns.py) are what a server does nearly all the time, so the loop's own waiting is turned inside out: `TurnLoop`
waits in the poller of Turns, which has the loop's descriptors in it. A turn costs one wait and no round of the loop;
the loop comes round when it has something to do itself: a descriptor of its own, a timer, or what a turn has called
soon.

A server that speaks HTTP has much to do in the loop, and gets uvloop's where that is installed; its poller is then one
of the descriptors that the loop watches.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple

Args = TypeVarTuple("Args")

Wait = Callable[[float | None], None]
"""Take turns until the loop is wanted, or until this many seconds are over (None: forever)."""


class TurnSelector(selectors.DefaultSelector):
    """What the loop waits with."""

    def __init__(self) -> None:
        super().__init__()
        self.wait: Wait | None = None  # as long as there are turns to take
        self.is_wanted = False  # the loop has got something to do meanwhile

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.wait is None:
            return super().select(timeout)
        self.is_wanted = False
        self.wait(timeout)
        return super().select(0)


class TurnLoop(asyncio.SelectorEventLoop):
    """An event loop that waits as Turns does."""

    def __init__(self) -> None:
        self.selector = TurnSelector()
        super().__init__(self.selector)

    def call_soon(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        self.selector.is_wanted = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.selector.is_wanted = True
        return super().call_at(when, callback, *args, context=context)


def new_event_loop(speaks_http: bool) -> asyncio.AbstractEventLoop:
    """The loop to serve with."""
    if speaks_http:
        try:
            import uvloop
        except ImportError:
            pass
        else:
            return uvloop.new_event_loop()
    return TurnLoop()
