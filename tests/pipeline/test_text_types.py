"""A field's text is the same value of a type, or none, whoever reads it: Arrow, or Spark in any zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlite_pubsub.pipeline import read_topic, text_types
from tests.pipeline.cold_server import SMALL_BLOCKS, wait_for_blocks

if TYPE_CHECKING:
    import redis
    from pyspark.sql import DataFrame, SparkSession
    from server_process import Serve, ServerProcess

KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(6,2)", "decimal(38,0)", "date",
    "timestamp", "timestamp_ntz", "string",
)  # fmt: skip
TEXTS = (
    b"", b" ", b"0", b"1", b"-1", b"+1", b" 7 ", b"\t7\r\n", b"\xc2\xa07", b"007", b"1_000", b"1,000", b"0x1F", b"1.",
    b".5", b"-.5", b"+.5e1", b"1.0", b"1e3", b"1E+3", b"1e", b"1d", b"1f", b"1L", b"--1", b"127", b"128", b"-128",
    b"-129", b"32768", b"2147483647", b"2147483648", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775808", b"3.505", b"3.50", b"9999.99", b"99999.9", b"12.30000", b"1e400", b"-1e400", b"1e-400",
    b"3.5e38", b"1e-46", b"0.1", b"16777217", b"9007199254740993", b"9" * 38, b"9" * 39, b"0" * 45 + b"1.10",
    b"nan", b"NaN", b"-nan", b"inf", b"-Inf", b"+Infinity", b"infinit", b"true", b"TRUE", b"t", b"Yes", b"y", b"on",
    b"false", b"F", b"no", b"N", b"off", b"null", b"2026-11-19", b"2026-1-5", b"2026-02-29", b"2024-02-29",
    b"1900-02-29", b"2000-02-29", b"0000-01-01", b"0001-01-01", b"9999-12-31", b"2026", b"2026-11", b"+2026-11-19",
    b"20261119", b"2026-11-19T10:00:00", b"2026-11-19 10:00", b"2026-11-19T10", b"2026-11-19T10:00:00Z",
    b"2026-11-19T10:00:00z", b"2026-11-19T10:00:00.123Z", b"2026-11-19T10:00:00.123456789Z",
    b"2026-11-19T10:00:00.1234567890Z", b"2026-11-19T12:00:00+02:00", b"2026-11-19T12:00:00+0230",
    b"2026-11-19T12:00+02", b"2026-11-19T12:00:00 +02:00", b"2026-11-19T12:00:00+14:00", b"2026-11-19T12:00:00+19:00",
    b"2026-11-19T10:00:00 UTC", b"2026-11-19T10:00:00Europe/Berlin", b"2026-11-19T24:00:00", b"2026-11-19T23:59:60Z",
    b"2026-11-19Z", b"2026-11-19+02:00", b"2026-03-29T02:30:00", b"2026-10-25T02:30:00", b"1883-11-18T12:00:00",
    b"1582-10-10", b"1582-10-10T00:00:00", b"0001-01-01T00:00:00", b"T10:00:00", b"10:00:00", b"epoch", b"now", b"tea",
    "tée".encode(), b"\xff", b"7\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"a\x00b", b"1\x00",
    "\u0661".encode(), "\uff11".encode(), b"7\x0b", b"7\x1c", "7\u2028".encode(), "7\u0085".encode(),
)  # fmt: skip
ZONES = ("UTC", "Europe/Berlin", "America/New_York")


@pytest.fixture(params=ZONES)
def zoned(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session, in a time zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(before))


def told(column: Any) -> list[object]:
    """Values that can be compared, and tell NaN from nothing and -0.0 from 0.0."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [repr(value) for value in column.to_pylist()]


def by_arrow(texts: Sequence[bytes]) -> dict[str, list[object]]:
    column = pa.array(texts, pa.binary())
    return {kind: told(text_types.typed(column, kind)) for kind in KINDS}


def by_spark(spark: SparkSession, texts: Sequence[bytes]) -> dict[str, list[object]]:
    table = pa.table({"n": list(range(len(texts))), "text": pa.array(texts, pa.binary())})
    frame = spark.createDataFrame(table).orderBy("n")
    made = [f"{text_types.expression('cast(text as string)', kind)} as `{kind}`" for kind in KINDS]
    found = frame.selectExpr(*made).toArrow()
    return {kind: told(found.column(kind)) for kind in KINDS}


def test_every_text_of_the_table_is_the_same_everywhere(zoned: SparkSession) -> None:
    arrow, spark = by_arrow(TEXTS), by_spark(zoned, TEXTS)
    different = [
        (kind, text, one, other)
        for kind in KINDS
        for text, one, other in zip(TEXTS, arrow[kind], spark[kind], strict=True)
        if one != other
    ]
    assert not different


PIECES = st.sampled_from([
    *"0123456789+-.eE: TZ_,xXdfL\t\n\v\r\x1c", "00", "nan", "inf", "Infinity", "true", "no", "2026-11-19", "0001-01-01",
    "9999-12-31", "-02-29", "T10:00", ":59", ".123456789", "+02:00", "-14:59", "+0230", "9" * 19, "9" * 38, "e308",
    "e-324", "\u00a0", "\u0661", "Europe/Berlin", "UTC",
])  # fmt: skip
TYPED = st.one_of(
    st.lists(PIECES, max_size=6).map(lambda pieces: "".join(pieces).encode()),
    st.integers(-(10**40), 10**40).map(lambda number: b"%d" % number),
    st.floats().map(lambda number: repr(number).encode()),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: f"{number:f}".encode()),
    st.dates().map(lambda day: str(day).encode()),
    st.datetimes(timezones=st.timezones() | st.none()).map(lambda at: at.isoformat().encode()),
    st.datetimes().map(lambda at: str(at).encode()),
    st.binary(max_size=8),
    st.text(max_size=8).map(str.encode),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TYPED, min_size=40, max_size=200))
def test_any_text_is_the_same_everywhere(zoned: SparkSession, texts: list[bytes]) -> None:
    arrow, spark = by_arrow(texts), by_spark(zoned, texts)
    for kind in KINDS:
        different = [each for each in zip(texts, arrow[kind], spark[kind], strict=True) if each[1] != each[2]]
        assert not different, kind


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", b" Yes", True),
        ("boolean", b"on", None),
        ("tinyint", b"+007", 7),
        ("tinyint", b"128", None),
        ("int", b"1.0", None),
        ("int", b"0x1F", None),
        ("bigint", b"-9223372036854775808", -(2**63)),
        ("double", b"1e400", None),
        ("double", b"-INFINITY", float("-inf")),
        ("double", b"1e-400", 0.0),
        ("decimal(6,2)", b"12.3000", Decimal("12.30")),
        ("decimal(6,2)", b"3.505", None),
        ("decimal(6,2)", b"99999.9", None),
        ("decimal(38,38)", b"." + b"1" * 38, Decimal("." + "1" * 38)),
        ("decimal(5,5)", b"1.0", None),
        ("date", b"2026-11-19", date(2026, 11, 19)),
        ("date", b"2026-11-19T10:00:00", None),
        ("date", b"1900-02-29", None),
        ("timestamp", b"2026-11-19T10:00:00", datetime(2026, 11, 19, 10, tzinfo=UTC)),
        ("timestamp", b"2026-11-19", datetime(2026, 11, 19, tzinfo=UTC)),
        ("timestamp", b"2026-11-19 12:00+0230", datetime(2026, 11, 19, 9, 30, tzinfo=UTC)),
        ("timestamp", b"2026-11-19T10:00:00.1234567Z", datetime(2026, 11, 19, 10, 0, 0, 123456, tzinfo=UTC)),
        ("timestamp", b"now", None),
        ("timestamp_ntz", b"2026-11-19T10:00:00", datetime(2026, 11, 19, 10)),
        ("timestamp_ntz", b"2026-11-19T10:00:00Z", None),
        ("string", b"\xff", None),
    ],
)
def test_a_text_is_what_the_page_says(kind: str, text: bytes, value: object) -> None:
    assert text_types.typed(pa.array([text], pa.binary()), kind).to_pylist() == [value]


def test_the_examples_on_the_page_are_values_and_the_page_has_the_table() -> None:
    assert text_types.page() in (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    for rule in text_types.RULES:
        for kind in rule.types:
            one = "decimal(6,2)" if kind == "decimal" else kind
            made = text_types.typed(pa.array([text.encode() for text in rule.examples], pa.binary()), one)
            assert not made.null_count


# -- over a server, in blocks and not yet


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve(*SMALL_BLOCKS)


def rows(frame: DataFrame) -> list[list[object]]:
    return [told(column) for column in frame.orderBy("ms", "seq").drop("ms", "seq").toArrow().columns]


def test_the_source_and_read_topic_are_equal_in_every_mode_and_zone(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    typed = by_arrow(TEXTS)
    good = [[text for text, one in zip(TEXTS, typed[kind], strict=True) if one != "None"] for kind in KINDS]
    pipe = client.pipeline(transaction=False)
    for turn in range(600):
        entry = {f"x{place}": texts[turn % len(texts)] for place, texts in enumerate(good)}
        pipe.xadd("t", {"any": TEXTS[turn % len(TEXTS)], **entry})
    pipe.execute()
    wait_for_blocks(client, "t", 5)
    of_any = ", ".join(f"any as any{place} {kind}" for place, kind in enumerate(KINDS))
    of_good = ", ".join(f"x{place} {kind}" for place, kind in enumerate(KINDS))
    kept = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ZONES:
            spark.conf.set("spark.sql.session.timeZone", zone)
            for mode, fields in (("PERMISSIVE", of_any), *([("FAILFAST", of_good)] if zone == ZONES[1] else [])):
                asked = {"url": url, "subscribe": "t", "fields": fields, "mode": mode}
                native = read_topic(spark, **asked)
                assert len(native.inputFiles()) >= 5
                found = rows(native)
                assert found == rows(spark.read.format("rlite").options(**asked).load())
                assert mode == "PERMISSIVE" or not any("None" in column for column in found)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(kept))
    for kind in ("int", "timestamp", "string"):
        asked = {"url": url, "subscribe": "t", "fields": f"any {kind}", "mode": "FAILFAST"}
        for frame in (read_topic(spark, **asked), spark.read.format("rlite").options(**asked).load()):
            with pytest.raises(Exception, match=f"column 'any': .* is no {kind}; mode PERMISSIVE"):
                frame.select("any").toArrow()
