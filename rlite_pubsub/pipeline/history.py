"""A topic's history as Arrow, without a JVM: blocks, and what is not in blocks yet, as one stream of record batches.

Planned when it is made, as a batch of the Spark source is (reading/): entries that come later are not in it, and what
is gone by the time that it is read is an error. Read span by span: while one row group is worked on, a thread fetches
the next, and no more than these two are held.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rlite_pubsub.pipeline import columns, text_types
from rlite_pubsub.pipeline.catalog import catalog
from rlite_pubsub.pipeline.columns import KINDS, Column, Made
from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.field_columns import field_columns
from rlite_pubsub.pipeline.options import STORE, SourceOptions
from rlite_pubsub.pipeline.reading.fetching import entries
from rlite_pubsub.pipeline.reading.offsets import extents, windows
from rlite_pubsub.pipeline.reading.planning import plan
from rlite_pubsub.pipeline.reading.rows import FetchedRows

if TYPE_CHECKING:
    import redis

_SERVERS = ("redis://", "rediss://", "unix://", STORE)
_HEADERS = pa.list_(pa.field("element", pa.struct([("name", pa.binary()), ("value", pa.binary())])))
_OF_STORES = ("data.mdb", "live.mdb")
_ID = re.compile("[0-9]{1,20}-[0-9]{1,20}")
DEFAULT = ("id", "ms", "seq", "timestamp", "headers")


class History:
    """The entries that a topic has now. It can be read more than once, and each time anew; it holds nothing open
    between.

    pyarrow, Polars, DuckDB and whatever else knows the Arrow C stream take it as it is."""

    def __init__(self, options: SourceOptions, wanted: Sequence[Column]) -> None:
        """Raises OptionRefused, TopicMissing, DataLoss."""
        columns.check(wanted)
        self._options = options
        self._columns = list(wanted)
        self.schema = pa.schema([pa.field(one.name, _type(one)) for one in wanted])
        found = catalog(options)
        self._spans = [span for share in plan(found, windows(found, options, extents(found)), None) for span in share]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """All entries, in order. Raises DataLoss, ValueRefused, ColdError."""
        rows = FetchedRows(self._columns, self.schema, is_permissive=self._options.is_permissive)
        client = None if self._options.url is None else connect(self._options)
        for batch in _ahead(self._batches(client, rows.has_fields)):
            yield rows.of(batch)

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """The same, for programs with an event loop, which goes on meanwhile."""
        import asyncio

        batches = iter(self)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield batch

    def _batches(self, client: redis.Redis | None, has_fields: bool) -> Generator[pa.RecordBatch]:
        for span in self._spans:
            for batch in entries(client, span, complete=self._options.fail_on_data_loss, has_fields=has_fields):
                if batch.num_rows:
                    yield batch

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader that has been given to nobody else."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """Return all of it, in memory."""
        return self.reader().read_all()

    def to_polars(self) -> Any:
        """Return a DataFrame of Polars."""
        import polars

        return polars.from_arrow(self.to_table())

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas."""
        return self.to_table().to_pandas()

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return a relation of DuckDB, which reads the entries when it is first asked for, and once."""
        import duckdb

        return (connection or duckdb).from_arrow(self.reader())


def history(
    source: str | os.PathLike[str],
    topic: str,
    *,
    since: str | None = None,
    until: str | None = None,
    wanted: str | Iterable[str] | None = None,
    **options: object,
) -> History:
    """Plan what there is. `since`, `until`: moments, or ids, of which the first is not read and the last is. `options`:
    those of the Spark source. Raises OptionRefused, TopicMissing, DataLoss."""
    said = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    said |= {"subscribe": topic, **_place(os.fspath(source))}
    known = SourceOptions.of(said | _bound("starting", topic, since) | _bound("ending", topic, until)).for_reading()
    text = wanted if isinstance(wanted, str) else ", ".join(DEFAULT if wanted is None else wanted)
    return History(known, [_column(*one) for one in field_columns(text)])


def _place(source: str) -> dict[str, str]:
    """Return a source as options: a server, a store's folder, or a cold store by itself."""
    if source.startswith(_SERVERS):
        return {"url": source}
    is_cold = "://" in source or (
        os.path.isdir(source) and not any(os.path.exists(os.path.join(source, name)) for name in _OF_STORES)
    )
    return {"coldPath": source} if is_cold else {"url": source}


def _bound(which: str, topic: str, said: str | None) -> dict[str, str]:
    if said is None:
        return {}
    if _ID.fullmatch(said):
        return {f"{which}Offsets": json.dumps({topic: said})}
    return {f"{which}Timestamp": said}


def _column(field: str, name: str, kind: str) -> Column:
    """Return a column of the table of columns.py, if it is one and has no other name, or else a field."""
    if field == name and field in KINDS and kind == "string":
        return Column(name, KINDS[Made(field)], Made(field))
    return Column(name, text_types.SAME.get(kind, kind), field.encode())


def _type(column: Column) -> pa.DataType:
    return _HEADERS if column.kind == KINDS[Made.HEADERS] else text_types.arrow_type(column.kind)


def _ahead(batches: Generator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same; a thread fetches the next one meanwhile."""
    with closing(batches), ThreadPoolExecutor(1, "history") as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
