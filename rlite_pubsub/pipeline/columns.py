"""The columns of entries, and those of them that somebody wants.

    topic      string       the topic's name
    id         string       the entry's id, `ms-seq`
    ms, seq    bigint       the same, in two halves (those from 2^63 on look negative)
    timestamp  timestamp    the first half; null from the year 9999 on
    uuid       string       the id, as the HTTP API calls an event's
    key        binary       the field `key`; null if there is none
    value      binary       the field `value`; of an entry without one, a JSON object of all its fields
    headers    array<struct<name:binary,value:binary>>    all fields, in order, repeats kept

Any other column is the field of its name, or of the name that it is said to have. Types are in Spark's words; how a
field's text becomes one of them is in text_types.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.pipeline import text_types
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.field_columns import FieldColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from rlite_pubsub.pipeline.options import SourceOptions

EVENTS = "events"
"""The topic of the HTTP API's events."""


class Made(StrEnum):
    """The columns that the source makes."""

    TOPIC = "topic"
    ID = "id"
    MS = "ms"
    SEQ = "seq"
    TIMESTAMP = "timestamp"
    UUID = "uuid"
    KEY = "key"
    VALUE = "value"
    BODY = "body"
    HEADERS = "headers"


Origin = Made | bytes
"""Of a column: one of these, or a field's name."""

KINDS: dict[Made, str] = {
    Made.TOPIC: "string",
    Made.ID: "string",
    Made.MS: "bigint",
    Made.SEQ: "bigint",
    Made.TIMESTAMP: "timestamp",
    Made.UUID: "string",
    Made.KEY: "binary",
    Made.VALUE: "binary",
    Made.BODY: "string",
    Made.HEADERS: "array<struct<name:binary,value:binary>>",
}
OF_TEXT = frozenset((Made.KEY, Made.VALUE, Made.BODY))
"""What may be wanted as another type."""
_ALWAYS = (Made.TOPIC, Made.ID, Made.MS, Made.SEQ, Made.TIMESTAMP)
EVERY = (*_ALWAYS, Made.KEY, Made.VALUE, Made.HEADERS)
"""Of every topic, `events` too."""


class Column(NamedTuple):
    """A column that is wanted."""

    name: str
    kind: str
    origin: Origin

    @property
    def is_text(self) -> bool:
        """Return whether it is made of a field's bytes, which become its type."""
        return not isinstance(self.origin, Made) or self.origin in OF_TEXT


def columns_of(options: SourceOptions, samples: Iterable[pa.RecordBatch] = ()) -> list[Column]:
    """Return the columns where nobody says which. `samples`: some entries from which to infer their fields. Raises
    OptionRefused."""
    headers = _made(Made.HEADERS)
    if options.fields or options.infer_fields:
        made = columns_with(_ALWAYS, options.fields or inferred(samples))
        return [*made, headers] if options.include_headers else made
    made = list(map(_made, _ALWAYS))
    if is_events(options):
        made += [_made(Made.UUID), _of_field(FieldColumn("type", "type")), _made(Made.BODY)]
    else:
        made += [_made(Made.KEY), _made(Made.VALUE)]
    return made if options.include_headers is False else [*made, headers]


def columns_with(made: Iterable[Made], fields: Iterable[FieldColumn]) -> list[Column]:
    """Return these columns, and behind them fields. Raises OptionRefused where two have one name."""
    found = [*map(_made, made), *map(_of_field, fields)]
    _check_names(found)
    return found


def is_events(options: SourceOptions) -> bool:
    return options.subscribe == (EVENTS,)


def named(name: str, options: SourceOptions) -> Origin:
    """Return what a column of this name is made of."""
    for one in options.fields:
        if one.column == name:
            return one.field.encode()
    if name == Made.BODY and not is_events(options):
        return name.encode()
    return Made(name) if name in KINDS else name.encode()


def check(columns: Sequence[Column]) -> None:
    """Raises OptionRefused where a column cannot be made as the type that is wanted."""
    for one in columns:
        if one.is_text:
            if not text_types.is_known(one.kind):
                raise OptionRefused(
                    f"schema: column {one.name!r}: a field can't be read as {one.kind}; read it as string, and use "
                    "from_json"
                )
        elif isinstance(one.origin, Made) and one.kind != KINDS[one.origin]:
            raise OptionRefused(f"schema: column {one.name!r} is {KINDS[one.origin]}, not {one.kind}")


def _made(what: Made) -> Column:
    return Column(str(what), KINDS[what], what)


def _of_field(one: FieldColumn) -> Column:
    return Column(one.column, text_types.SAME.get(one.type, one.type), one.field.encode())


def _check_names(made: Sequence[Column]) -> None:
    """Spark does not tell `Item` from `item`. Raises OptionRefused."""
    seen: set[str] = set()
    for one in made:
        if one.name.lower() in seen:
            field = one.origin.decode() if isinstance(one.origin, bytes) else one.name
            raise OptionRefused(f"fields: there is a column {one.name!r} already; say `{field} as other_name`")
        seen.add(one.name.lower())


def inferred(samples: Iterable[pa.RecordBatch]) -> list[FieldColumn]:
    """The fields that these entries have, in the order in which they come. One that is called as a column of the source
    has `field_` before its name. Raises OptionRefused where two names differ by their case alone."""
    found: dict[bytes, bool] = {}
    for batch in samples:
        pairs = batch.column("fields").flatten()
        names = pc.unique(pairs.field(0)).to_pylist()
        for name in names:
            values = pairs.field(1).filter(pc.equal(pairs.field(0), name))
            found[name] = found.get(name, True) and _is_text(values)
    return [
        FieldColumn(text, f"field_{text}" if text.lower() in _ALWAYS else text, "string" if is_text else "binary")
        for text, is_text in ((text_of(name), is_text) for name, is_text in found.items())
    ]


def _is_text(values: pa.Array) -> bool:
    try:
        values.cast("string")
    except ValueError:
        return False
    return True
