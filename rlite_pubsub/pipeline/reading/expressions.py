"""The columns of the source as Spark's own expressions, over columns as blocks have them: topic, ms, seq, fields.

They are what rows.py makes by Arrow. Spark computes those that a query needs, and reads no others. As text they are one
call to the JVM each; no backslash is in them, for what it means there is a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from rlite_pubsub.pipeline.reading.rows import LAST_MS
from rlite_pubsub.pipeline.schema import COLUMNS, OF_TEXT, Made, origin_of
from rlite_pubsub.storage.topics import uuid6

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

    from rlite_pubsub.pipeline.options import SourceOptions

RAW = "topic string, ms bigint, seq bigint, fields array<struct<name: binary, value: binary>>"
_LOOKED_AT = 4
"""Fields that are looked at one by one, which is quick; the others by a function of higher order."""


def expressions(schema: StructType, options: SourceOptions) -> list[Column]:
    """Return an expression for each column, with its name and metadata."""
    return [
        F.expr(_expression(one, options)).alias(one.name, metadata=one.metadata or {}) for one in schema.fields
    ]


def _expression(column: StructField, options: SourceOptions) -> str:
    origin = origin_of(column, options)
    if isinstance(origin, Made) and origin not in OF_TEXT:
        return f"cast({_MADE[origin]} as {COLUMNS[origin].simpleString()})"
    made = _MADE[origin] if isinstance(origin, Made) else field(origin)
    return _typed(made, column.name, column.dataType, is_permissive=options.is_permissive)


def field(name: bytes) -> str:
    """Return the value of the first field of this name; null if an entry has no such field."""
    wanted = f"X'{name.hex()}'"
    cases = " ".join(
        f"when get(fields, {place}).name = {wanted} then get(fields, {place}).value "
        f"when size(fields) = {place + 1} then null"
        for place in range(_LOOKED_AT)
    )
    others = f"get(filter(fields, one -> one.name = {wanted}), 0).value"
    return f"case {cases} else {others} end"


def _typed(value: str, name: str, wanted: DataType, *, is_permissive: bool) -> str:
    """Return a field's bytes as a column's type (typing_text.py)."""
    if isinstance(wanted, BinaryType):
        return value
    text = f"cast({value} as string)"
    made = text if isinstance(wanted, StringType) else f"try_cast({text} as {wanted.simpleString()})"
    made = f"case when is_valid_utf8({text}) then {made} end"
    if is_permissive:
        return made
    about = _text(f"column {name!r}: "), _text(f" is no {wanted.simpleString()}; mode PERMISSIVE makes it null")
    quote = _text("'")
    told = (
        f"concat({_text('topic ')}, {quote}, topic, {quote}, {_text(': entry ')}, {_ID}, {_text(': ')}, {about[0]}, "
        f"{quote}, {text}, {quote}, {about[1]})"
    )
    refused = f"case when {value} is not null then cast(raise_error({told}) as {wanted.simpleString()}) end"
    return f"coalesce({made}, {refused})"


def _text(words: str) -> str:
    """Return a literal, whatever is in it."""
    return f"cast(X'{words.encode().hex()}' as string)"


def _unsigned(half: str) -> str:
    return f"case when {half} >= 0 then cast({half} as string) else conv(hex({half}), 16, 10) end"


_ID = f"concat({_unsigned('ms')}, '-', {_unsigned('seq')})"


def _hex(number: str, digits: int) -> str:
    return f"lpad(lower(hex({number})), {digits}, '0')"


def _uuid() -> str:
    """Return an id as in storage/topics/uuid6.py."""
    stamp = f"((ms + {uuid6.EPOCH_MS}L) * {uuid6.TICKS}L + shiftrightunsigned(seq, {uuid6.TICK_SHIFT}))"
    clock = f"(shiftrightunsigned(seq, {uuid6.LOW_BITS}) & {uuid6.CLOCK}L) + {0x8000}L"
    parts = (
        _hex(f"shiftright({stamp}, 28)", 8),
        _hex(f"shiftright({stamp}, 12) & {0xFFFF}L", 4),
        f"concat('6', {_hex(f'{stamp} & {0xFFF}L', 3)})",
        _hex(clock, 4),
        _hex(f"(seq & {uuid6.LOW}L) + {uuid6.NODE << uuid6.LOW_BITS}L", 12),
    )
    return f"case when ms between 0 and {uuid6.MAX_MS}L then concat_ws('-', {', '.join(parts)}) else {_ID} end"


# -- JSON, as field_text.py has it


def _json(fields: str) -> str:
    name, value = "one.name", "one.value"
    escaped = f"case when ascii(char) < 128 then char else concat(chr(92), 'x', {_hex('ascii(char)', 2)}) end"
    spelled = f"array_join(transform(split(decode({name}, 'ISO-8859-1'), ''), char -> {escaped}), '')"
    named = f"case when {_is_text(name)} then cast({name} as string) else {spelled} end"
    said = f"case when {_is_text(value)} then {_quoted(f'cast({value} as string)')} else {_base64(value)} end"
    pairs = f"transform({fields}, one -> concat({_quoted(named)}, ': ', {said}))"
    return f"concat('{{', array_join({pairs}, ', '), '}}')"


def _is_text(value: str) -> str:
    return f"is_valid_utf8(cast({value} as string))"


def _quoted(text: str) -> str:
    """Return the inside of an array of one."""
    return f"regexp_extract(to_json(array({text})), '(?s)^.(.*).$', 1)"


def _base64(value: str) -> str:
    return f"""concat('{{"base64": "', base64({value}), '"}}')"""


def _body() -> str:
    body = field(b"body")
    others = f"filter(fields, one -> one.name <> X'{b'type'.hex()}')"
    told = f"case when {_is_text(body)} then {body} else cast({_base64(body)} as binary) end"
    return f"case when {body} is not null then {told} else cast({_json(others)} as binary) end"


_MADE: dict[Made, str] = {
    Made.TOPIC: "topic",
    Made.ID: _ID,
    Made.MS: "ms",
    Made.SEQ: "seq",
    Made.TIMESTAMP: f"case when ms between 0 and {LAST_MS}L then timestamp_millis(ms) end",
    Made.UUID: _uuid(),
    Made.KEY: field(b"key"),
    Made.VALUE: f"coalesce({field(b'value')}, cast({_json('fields')} as binary))",
    Made.BODY: _body(),
    Made.HEADERS: "fields",
}
