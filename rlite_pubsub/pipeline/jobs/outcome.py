"""The result of a job, done or planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """Rows of plain values, for a table or JSON."""

    job: str
    rows: list[dict[str, object]]
    totals: dict[str, object] = field(default_factory=dict)
    is_well: bool = True
    """False: it has found something that somebody has to look at."""

    def about(self) -> dict[str, object]:
        """Return the shape of `--json`, which all jobs share."""
        return {"job": self.job, "ok": self.is_well, "rows": self.rows, "totals": self.totals}


def summed(rows: Iterable[Mapping[str, object]], *names: str) -> dict[str, object]:
    """Totals of these columns."""
    rows = list(rows)
    return {name: sum(value for row in rows if isinstance(value := row.get(name), int)) for name in names}
