"""The last hour: what is kept has a fixed size, in the order of time, and nobody asks other processes for it."""

from __future__ import annotations

import json
from collections.abc import Callable

from http_server import HttpServer
from patience import until

from rlite_pubsub.gateway.history import FIELDS, KEPT, History
from rlite_pubsub.storage.names import client_reports
from rlite_pubsub.storage.store import Store


class Loop:
    """Whose timers are called by hand."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., None], tuple[object, ...]]] = []

    def call_later(self, seconds: float, callback: Callable[..., None], *args: object) -> None:
        self.calls.append((callback, args))


def test_history_keeps_the_latest_samples_and_no_more() -> None:
    loop, numbers = Loop(), iter(range(KEPT + 5))
    history = History(lambda lag: {"ms": next(numbers), "commands": None, "loop_lag_ms": lag}, lambda: 2.5)
    history.begin(loop)  # type: ignore[arg-type]
    for _ in range(KEPT + 4):
        callback, args = loop.calls.pop()
        callback(*args)
    told = history.told()
    assert told["ms"] == list(range(5, KEPT + 5)) and told["loop_lag_ms"] == [2.5] * KEPT
    assert told["commands"] == [None] * KEPT and set(told) == set(FIELDS)


def test_history_begins_with_the_server_and_makes_nobody_report(
    serve: Callable[..., HttpServer], server: HttpServer
) -> None:
    other = serve()
    told = json.loads(server.ask("GET", "/api/stats/history")[2])
    assert told["interval_ms"] == 10_000 and told["samples"]["ms"] and told["samples"]["memory_bytes"][0] > 0
    with Store.open(server.store_folder) as store:
        assert store.live.read(client_reports.asked).until_ms == 0
        assert json.loads(other.ask("GET", "/api/stats")[2])["connections"] is not None
        until(lambda: store.live.read(client_reports.asked).until_ms > 0, "a question")
