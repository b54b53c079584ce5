"""The columns of the source as Spark's own expressions, over columns as blocks have them: topic, ms, seq, fields.

They are what rows.py makes by Arrow. Spark computes those that a query needs, and reads no others. As text they are one
call to the JVM each; no backslash is in them, for what it means there is a setting.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rlite_pubsub.pipeline import text_types
from rlite_pubsub.pipeline.columns import KINDS, Column, Made
from rlite_pubsub.pipeline.reading.rows import LAST_MS
from rlite_pubsub.pipeline.text_types import literal
from rlite_pubsub.storage.topics import uuid6

RAW = "topic string, ms bigint, seq bigint, fields array<struct<name: binary, value: binary>>"
_LOOKED_AT = 4
"""Fields that are looked at one by one, which is quick; the others by a function of higher order."""


def made(frame: DataFrame, columns: Sequence[Column], *, is_permissive: bool) -> tuple[DataFrame, list[Expression]]:
    """Return a frame that has what the columns are made of, and an expression of it for each column, in order.

    Fields' bytes are columns of a frame of their own: what makes a value of them looks at them more than once."""
    texts = {f"_text{place}": _bytes(one) for place, one in enumerate(columns) if one.is_text}
    return frame.select("*", *(F.expr(found).alias(name) for name, found in texts.items())), [
        F.expr(_expression(one, f"_text{place}", is_permissive)) for place, one in enumerate(columns)
    ]


def _bytes(column: Column) -> str:
    return _MADE[column.origin] if isinstance(column.origin, Made) else field(column.origin)


def _expression(column: Column, text: str, is_permissive: bool) -> str:
    if isinstance(column.origin, Made) and not column.is_text:
        return f"cast({_MADE[column.origin]} as {KINDS[column.origin]})"
    return _typed(text, column.name, column.kind, is_permissive)


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


def _typed(value: str, name: str, kind: str, is_permissive: bool) -> str:
    """Return a field's bytes as a column's type (text_types.py)."""
    if kind == "binary":
        return value
    text = f"cast({value} as string)"
    found = text_types.expression(text, kind)
    if is_permissive:
        return found
    about = literal(f": column {name!r}: "), literal(f" is no {kind}; mode PERMISSIVE makes it null")
    quote = literal("'")
    told = (
        f"concat({literal('topic ')}, {quote}, topic, {quote}, {literal(': entry ')}, {_ID}, {about[0]}, "
        f"{quote}, {text}, {quote}, {about[1]})"
    )
    refused = f"case when {value} is not null then cast(raise_error({told}) as {kind}) end"
    return f"coalesce({found}, {refused})"


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
