"""INFO's section Links, and the warnings about links to other servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rlite_pubsub.engine.stats.warnings import WARNING, Warning
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.storage.commons.link_state import LinkState


_SAFE: Final = " :/.()'@?[]*;_-"


def links(engine: Engine) -> Iterator[tuple[str, object]]:
    """Yield a line for each link; URLs and errors are percent-encoded. No password is shown."""
    every = states(engine)
    yield "links", len(every)
    for number, each in enumerate(every):
        url, error = quote(each.url, safe=_SAFE), quote(each.error, safe=_SAFE)
        yield (
            f"link{number}",
            f"name={each.name},state={each.state},url={url},messages_in={each.messages_in},"
            f"messages_out={each.messages_out},dropped={each.dropped},entries_in={each.entries_in},"
            f"entries_out={each.entries_out},lag={each.lag},lag_ms={each.lag_ms},gaps={each.gaps},"
            f"bytes_in={each.bytes_in},bytes_out={each.bytes_out},error={error}",
        )


def warnings(engine: Engine) -> list[Warning]:
    """Return warnings about links that have been down for long, or cannot transfer a topic."""
    most_s = engine.settings["warn-link-down"]
    if not most_s:
        return []
    now_ms = int(engine.clock() * 1000)
    found = []
    for each in states(engine):
        is_down = each.state in ("down", "stopped") and now_ms - each.since_ms >= most_s * 1000
        if is_down or (each.error and each.state == "up"):
            text = f"The link {each.name} is {each.state}: {each.error or 'nobody has it'}"
            found.append(Warning("link_down", WARNING, (each.name.encode("latin-1"),), text))
    return found


def states(engine: Engine) -> list[LinkState]:
    """Return the state of every link; none if the store cannot be read."""
    try:
        return engine.links.states()
    except StoreError:
        return []
