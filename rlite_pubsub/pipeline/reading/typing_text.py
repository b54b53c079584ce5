"""Turning a field's text into a column's type: numbers, booleans, dates and times as people write them.

A time without a zone is UTC. Blanks around a number or a time do not matter.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def typed(texts: pa.BinaryArray, wanted: pa.DataType, *, is_permissive: bool) -> pa.Array:
    """The same values. What is none of this type is null, if that is permitted, and raises ArrowInvalid if not."""
    try:
        return _cast(texts, wanted)
    except pa.ArrowInvalid:
        if not is_permissive:
            raise
    return pa.concat_arrays([_one(texts[row : row + 1], wanted) for row in range(len(texts))])


def first_bad(texts: pa.BinaryArray, wanted: pa.DataType) -> int:
    """Return the index of the first that raises."""
    for row in range(len(texts)):
        if texts[row].is_valid and not _one(texts[row : row + 1], wanted)[0].is_valid:
            return row
    raise AssertionError("each by itself is a value of this type")


def _one(text: pa.BinaryArray, wanted: pa.DataType) -> pa.Array:
    try:
        return _cast(text, wanted)
    except pa.ArrowInvalid:
        return pa.nulls(1, wanted)


def _cast(texts: pa.BinaryArray, wanted: pa.DataType) -> pa.Array:
    text = texts.cast(pa.string())
    if pa.types.is_string(wanted) or pa.types.is_large_string(wanted):
        return text.cast(wanted)
    text = pc.utf8_trim_whitespace(text)
    if pa.types.is_timestamp(wanted):
        return _times(text).cast(wanted) if wanted.tz else text.cast(wanted)
    return text.cast(wanted)


def _times(text: pa.StringArray) -> pa.TimestampArray:
    zoned = pc.match_substring_regex(text, r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")
    has_time = pc.match_substring_regex(text, r"[0-9]:[0-9]")
    is_zoned = pc.and_(zoned, has_time)
    return pc.if_else(is_zoned, text, pc.binary_join_element_wise(_at_midnight(text, has_time), "Z", "")).cast(
        pa.timestamp("us", "UTC")
    )


def _at_midnight(text: pa.StringArray, has_time: pa.BooleanArray) -> pa.StringArray:
    """A date alone is its first moment."""
    return pc.if_else(has_time, text, pc.binary_join_element_wise(text, "T00:00:00", ""))
