"""Fields of entries as columns of their own, and nothing of an entry lost in silence."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rlite_pubsub.cold.columns import to_batch
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.field_columns import FieldColumn, field_columns
from rlite_pubsub.pipeline.reading.field_text import json_of
from rlite_pubsub.storage.topics import entry_ids, uuid6
from tests.pipeline.test_reader import load

ORDERS = [
    {"item": "tea", "price": "3.50"},
    {"item": "milk", "price": " 1e1 ", "note": "fresh"},
    {"price": "0"},
]


def add(client: redis.Redis, topic: str, *entries: Any) -> None:
    for number, fields in enumerate(entries, 1):
        client.xadd(topic, fields, id=f"{number}-0")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("item,price", [("item", "item", "string"), ("price", "price", "string")]),
        (" item , price double,", [("item", "item", "string"), ("price", "price", "double")]),
        ("id as order_id long, a DECIMAL(10, 2)", [("id", "order_id", "long"), ("a", "a", "decimal(10,2)")]),
        ("n int as m", [("n", "m", "int")]),
        ("`a, b` as `c``d`", [("a, b", "c`d", "string")]),
        ("", []),
    ],
)
def test_fields_are_said_as_one_would_say_them(text: str, columns: list[tuple[str, str, str]]) -> None:
    assert field_columns(text) == tuple(FieldColumn(*one) for one in columns)


@pytest.mark.parametrize("text", [",", "a,,b", "a as", "a duble", "a int as b int", "`a"])
def test_fields_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(OptionRefused, match="fields: "):
        field_columns(text)


def test_fields_are_columns_by_schema_by_option_and_inferred(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    add(client, "orders", *ORDERS)
    reader = spark.read.format("rlite").option("url", url).option("subscribe", "orders")
    by_schema = reader.schema("item string, price double, id string").load()
    assert [tuple(row) for row in by_schema.collect()] == [
        ("tea", 3.5, "1-0"), ("milk", 10.0, "2-0"), (None, 0.0, "3-0"),
    ]  # fmt: skip
    named = load(spark, url, subscribe="orders", fields="item, price double")
    assert named.columns == ["topic", "id", "ms", "seq", "timestamp", "item", "price"]
    assert [tuple(row) for row in named.select("item", "price").collect()] == [("tea", 3.5), ("milk", 10.0), (None, 0)]
    inferred = load(spark, url, subscribe="orders", inferFields=True)
    assert inferred.columns[5:] == ["item", "price", "note"]
    assert [row.note for row in inferred.collect()] == [None, "fresh", None]


def test_a_field_that_is_called_as_a_column_has_another_name(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    add(client, "t", {"id": "a", "Topic": b"\xff", "key": "k"})
    inferred = load(spark, url, subscribe="t", inferFields=True).first()
    assert inferred is not None and inferred.id == "1-0"
    assert (inferred.field_id, bytes(inferred.field_Topic), inferred.key) == ("a", b"\xff", "k")
    named = load(spark, url, subscribe="t", fields="id as order").first()
    assert named is not None and (named.id, named.order) == ("1-0", "a")
    with pytest.raises(PySparkException, match="say `id as other_name`"):
        load(spark, url, subscribe="t", fields="id")


def test_what_is_no_value_of_its_column_is_an_error_that_names_the_entry_or_null_where_that_is_said(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    add(client, "t", {"n": "1"}, {"n": "one"}, {"m": "1"})
    with pytest.raises(PySparkException, match="topic 't': entry 2-0: column 'n': 'one' is no int"):
        load(spark, url, subscribe="t", fields="n int").collect()
    found = load(spark, url, subscribe="t", fields="n int", mode="permissive").collect()
    assert [row.n for row in found] == [1, None, None]


def test_every_type_is_read_as_one_writes_it(spark: SparkSession, client: redis.Redis, url: str) -> None:
    add(
        client,
        "t",
        {"b": "true", "i": "-7", "f": "2.5", "c": "12.30", "d": "2026-11-19", "t": "2026-11-19 10:00:00", "x": b"\xff"},
        {"t": "2026-11-19T12:00:00+02:00"},
        {"t": "2026-11-19T10:00:00.000000Z"},
        {"t": "2026-11-19"},
    )
    schema = "b boolean, i byte, f float, c decimal(6,2), d date, t timestamp, x binary, value string"
    rows = load_schema(spark, url, schema)
    assert tuple(rows[0])[:5] == (True, -7, 2.5, Decimal("12.30"), date(2026, 11, 19)) and bytes(rows[0].x) == b"\xff"
    at_ten = datetime(2026, 11, 19, 10, tzinfo=UTC)
    assert [row.t.astimezone(UTC) for row in rows] == [at_ten, at_ten, at_ten, at_ten.replace(hour=0)]
    assert json.loads(rows[0].value)["x"] == {"base64": "/w=="}


def load_schema(spark: SparkSession, url: str, schema: str) -> list[Any]:
    return spark.read.format("rlite").option("url", url).option("subscribe", "t").schema(schema).load().collect()


def test_a_value_is_the_field_or_all_fields_by_name_and_never_null(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    add(client, "t", {"value": "plain"}, {"item": "tea", "price": "3"}, {"only": 'a "b"'}, {"key": "k", "value": "v"})
    rows = load(spark, url, subscribe="t").collect()
    assert [bytes(row.value).decode() for row in rows] == [
        "plain", '{"item": "tea", "price": "3"}', '{"only": "a \\"b\\""}', "v",
    ]  # fmt: skip
    assert [row.key and bytes(row.key) for row in rows] == [None, None, None, b"k"]


WORDS = st.binary(max_size=6) | st.text(max_size=6).map(str.encode) | st.sampled_from([b'"', b"\\", b"\n", b"\x0b"])


@given(st.lists(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), min_size=1, max_size=5))
def test_fields_as_json_are_all_there_in_order(entries: list[list[tuple[bytes, bytes]]]) -> None:
    packed, wire = b"", b""
    for number, pairs in enumerate(entries, 1):
        packed += entry_ids.pack((number, 0))
        wire += encode_entry((number, 0), tuple(word for pair in pairs for word in pair))
    fields = to_batch([_chunk(packed, wire, len(entries))], b"t").column("fields")
    for without in (None, b'"'):
        for text, pairs in zip(json_of(fields, without).to_pylist(), entries, strict=True):
            said = json.loads(text, object_pairs_hook=list)
            kept = [(name, value) for name, value in pairs if name != without]
            assert [_spelled(name) for name, _ in kept] == [name for name, _ in said]
            assert [_value(value) for _, value in kept] == [value for _, value in said]


def _chunk(ids: bytes, wire: bytes, count: int) -> bytes:
    ends, at = [], 0
    for _ in range(count):
        at = wire.find(b"*2\r\n$3\r\n", at + 1)
        ends.append(len(wire) if at < 0 else at)
    return count.to_bytes(4, "little") + ids + b"".join(end.to_bytes(4, "little") for end in ends) + wire


def _spelled(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("ascii", "backslashreplace")


def _value(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        import base64

        return [("base64", base64.b64encode(value).decode())]


def test_events_have_type_body_and_uuid(spark: SparkSession, client: redis.Redis, url: str) -> None:
    add(client, "events", {"type": "greeting", "body": "hällo"}, {"type": "odd", "n": "1"}, {"body": b"\xff"})
    frame = load(spark, url, subscribe="events")
    assert frame.columns == ["topic", "id", "ms", "seq", "timestamp", "uuid", "type", "body", "headers"]
    rows = frame.collect()
    assert [(row.type, row.body) for row in rows] == [
        ("greeting", "hällo"), ("odd", '{"n": "1"}'), (None, '{"base64": "/w=="}'),
    ]  # fmt: skip
    assert [uuid6.parse(row.uuid) for row in rows] == [(1, 0), (2, 0), (3, 0)]
    reader = spark.read.format("rlite").option("url", url).option("subscribe", "events")
    assert reader.schema("uuid string, type string").load().where("type = 'odd'").count() == 1
