"""The lines of `/metrics` on the store's links to other servers, labelled by their names.

Every server of the store reports them: take the maximum over servers, not the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from rlite_pubsub.storage.commons.link_state import LinkState

MAX_LINKS: Final = 50
STATES: Final = ("up", "connecting", "down", "paused", "stopped")


class _Said(NamedTuple):
    """One figure of a link."""

    make: Callable[..., Any]
    name: str
    meaning: str
    value: Callable[[LinkState], float]


_SAID: Final = (
    _Said(GaugeMetricFamily, "lag_entries", "Entries that are still to be brought over.", lambda link: link.lag),
    _Said(GaugeMetricFamily, "lag_seconds", "For how long the oldest has waited.", lambda link: link.lag_ms / 1000),
    _Said(CounterMetricFamily, "messages_in", "Messages that came in.", lambda link: link.messages_in),
    _Said(CounterMetricFamily, "messages_out", "Messages that went out.", lambda link: link.messages_out),
    _Said(CounterMetricFamily, "dropped", "Messages it could not take.", lambda link: link.dropped),
    _Said(CounterMetricFamily, "refused", "Messages the other side refused.", lambda link: link.refused),
    _Said(CounterMetricFamily, "bytes_in", "Bytes that came in.", lambda link: link.bytes_in),
    _Said(CounterMetricFamily, "bytes_out", "Bytes that went out.", lambda link: link.bytes_out),
    _Said(CounterMetricFamily, "entries_in", "Entries of topics that came in.", lambda link: link.entries_in),
    _Said(CounterMetricFamily, "entries_out", "Entries of topics that went out.", lambda link: link.entries_out),
    _Said(CounterMetricFamily, "gap_entries", "Entries removed before they were brought.", lambda link: link.gaps),
    _Said(CounterMetricFamily, "failures", "Connections that failed.", lambda link: link.failures),
)


def of_links(links: Sequence[LinkState]) -> Iterator[Metric]:
    """Yield the metrics of the first this many links, by name."""
    told = sorted(links, key=lambda link: link.name)[:MAX_LINKS]
    states = GaugeMetricFamily("rlite_link_state", "1 for the state that a link is in.", labels=["link", "state"])
    for link in told:
        for state in STATES:
            states.add_metric([link.name, state], link.state == state)
    yield states
    for said in _SAID:
        family = said.make(f"rlite_link_{said.name}", said.meaning, labels=["link"])
        for link in told:
            family.add_metric([link.name], said.value(link))
        yield family
    yield GaugeMetricFamily("rlite_link_untold", "How many have no rlite_link_* of their own.", len(links) - len(told))
