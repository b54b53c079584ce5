"""INFO's section Warnings: what is wrong, by the thresholds of the directives `warn-...`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_from_bytes

from rlite_pubsub.engine.stats import info_backup, info_links
from rlite_pubsub.engine.stats.info_subscribers import census_of
from rlite_pubsub.engine.stats.warnings import WARNING, Warning
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine


def found(engine: Engine) -> list[Warning]:
    """Return everything that is wrong, the worst first. Never fails."""
    if engine.warnings is None or engine.store is None:
        return []
    try:
        entries = census_of(engine, engine.store)
    except StoreError:
        entries = []
    behind = [Warning("backup_behind", WARNING, (), text) for text in info_backup.warnings(engine)]
    return [*engine.warnings.all(entries), *behind, *info_links.warnings(engine)]


def warnings(engine: Engine) -> Iterator[tuple[str, object]]:
    """Yield a line for each warning; names and texts are percent-encoded."""
    every = found(engine)
    yield "warnings", len(every)
    for number, each in enumerate(every):
        subject = "/".join([quote_from_bytes(part, safe=":. ") for part in each.subject])
        text = quote(each.text, safe=":/.() '%")
        yield f"warning{number}", f"code={each.code},severity={each.severity},subject={subject},text={text}"
