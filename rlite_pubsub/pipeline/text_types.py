"""The rules by which a field's text becomes a column's type. One table (`RULES`) says for each type which texts are its
values; Arrow reads by it (`typed`), Spark's expressions are made of it (`expression`), and the page shows it (`page`).

A text either is a value, and the same one everywhere, or it is none: nothing depends on who reads, on a session's time
zone, or on the other texts of a batch. The expressions are regular ones in the words that RE2 and Java share; what they
let through differs in nothing but how each library wants it spelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

SAME = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Other names of types."""
_BLANK = "[ \\x09-\\x0d]*"
_BLANKS = " \t\n\v\f\r"

_DIGITS = "[+-]?[0-9]+"
_POINT = "(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)"
_FOURTH = "(?:0[48]|[2468][048]|[13579][26])"
_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    f"|(?:[0-9]{{2}}{_FOURTH}|{_FOURTH}00)-02-29)"
)
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,9})?)?"
_ZONE = "(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)"
_ZONED = f":.*{_ZONE}\\z"


def _in_any_case(*words: str) -> str:
    spelled = ("".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in word) for word in words)
    return f"(?:{'|'.join(spelled)})"


_TRUE = _in_any_case("true", "t", "yes", "y", "1")
_FALSE = _in_any_case("false", "f", "no", "n", "0")
_NO_NUMBER = f"(?:{_in_any_case('nan')}|[+-]?{_in_any_case('inf', 'infinity')})"


class Rule(NamedTuple):
    """Which texts are values of some types."""

    types: tuple[str, ...]
    accepts: str
    """The whole text, but for blanks around it."""
    told: str
    """For people."""
    examples: tuple[str, ...]


RULES = (
    Rule(
        ("boolean",),
        f"{_TRUE}|{_FALSE}",
        "`true`, `t`, `yes`, `y`, `1`; `false`, `f`, `no`, `n`, `0`; in any case",
        ("TRUE", "no", "1"),
    ),
    Rule(
        ("tinyint", "smallint", "int", "bigint"),
        _DIGITS,
        "digits with or without a sign, within the type's range; no point, no exponent, no `_`",
        ("42", "-7", "+007"),
    ),
    Rule(
        ("float", "double"),
        f"[+-]?{_POINT}(?:[eE][+-]?[0-9]+)?|{_NO_NUMBER}",
        "a decimal number, with or without an exponent, rounded to the nearest value; `nan`, `inf`, `infinity` in any "
        "case. A number that is too large is no value",
        ("3.50", "-1e-3", ".5", "Infinity"),
    ),
    Rule(
        ("decimal",),
        "",
        "digits with or without a sign and a point, and no exponent; all of them have to fit: nothing is rounded, only "
        "zeros at either end are dropped",
        ("12.30", "-0.5", "+7."),
    ),
    Rule(("date",), _DATE, "`YYYY-MM-DD`, a day of the years 0001 to 9999", ("2026-11-19",)),
    Rule(
        ("timestamp",),
        f"{_DATE}(?:[T ]{_TIME}{_ZONE}?)?",
        "a date, or a date and a time (`HH:MM`, `HH:MM:SS`, up to nine digits behind a point, of which six count) with "
        "`T` or a blank between, and a zone (`Z`, `+02`, `+0200`, `+02:00`). **Without a zone it is UTC**, whatever "
        "the session's zone is; a date is its first moment",
        ("2026-11-19T10:00:00Z", "2026-11-19 10:00", "2026-11-19T12:00:00.5+02:00"),
    ),
    Rule(
        ("timestamp_ntz",),
        f"{_DATE}(?:[T ]{_TIME})?",
        "the same; a text with a zone is no value",
        ("2026-11-19T10:00:00",),
    ),
    Rule(("string",), "", "any UTF-8", ("tea",)),
    Rule(("binary",), "", "any bytes", ("tea",)),
)
_OF = {kind: rule for rule in RULES for kind in rule.types}
_DECIMAL = re.compile("decimal\\(([0-9]+),([0-9]+)\\)")


def parts_of_decimal(kind: str) -> tuple[int, int] | None:
    """Return (precision, scale); None if it is another type."""
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def is_known(kind: str) -> bool:
    """Return whether a text can become this type."""
    return kind in _OF or parts_of_decimal(kind) is not None


@lru_cache(maxsize=256)
def pattern(kind: str) -> str:
    """Return the expression of all texts that are looked at as this type, with the blanks around them. What it takes is
    a value, unless it is a number out of range."""
    parts = parts_of_decimal(kind)
    accepts = _OF[kind].accepts if parts is None else _digits_of(*parts)
    return _around(accepts)


def _around(accepts: str) -> str:
    return f"\\A{_BLANK}(?:{accepts}){_BLANK}\\z"


def _digits_of(precision: int, scale: int) -> str:
    before, behind = precision - scale, f"[0-9]{{0,{scale}}}0*"
    whole = f"(?:0+[0-9]{{0,{before}}}|[0-9]{{1,{before}}})" if before else "0+"
    part = f"(?:[0-9]{{1,{scale}}}0*|0+)" if scale else "0+"
    return f"[+-]?(?:{whole}(?:[.]{behind})?|[.]{part})"


def page() -> str:
    """Return the table for people."""
    return "\n".join(["| type | a text that is a value | such as |", "|---|---|---|", *map(_row, RULES)])


def _row(rule: Rule) -> str:
    kinds = (f"`{kind}(p,s)`" if kind == "decimal" else f"`{kind}`" for kind in rule.types)
    return f"| {', '.join(kinds)} | {rule.told} | {', '.join(f'`{one}`' for one in rule.examples)} |"


# -- Arrow


def arrow_type(kind: str) -> pa.DataType:
    """Return the type of a column in Arrow. Raises KeyError."""
    parts = parts_of_decimal(kind)
    return _ARROW[kind] if parts is None else pa.decimal128(*parts)


_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def typed(texts: pa.BinaryArray, kind: str) -> pa.Array:
    """Return the values; null where a text is none."""
    wanted = arrow_type(kind)
    if kind in ("string", "binary"):
        return _cast(texts, wanted)
    is_one = pc.match_substring_regex(texts, pattern(kind))
    if pc.all(is_one).as_py() is False:
        texts = pc.if_else(is_one, texts, None)
    text = pc.ascii_trim(texts.cast(pa.string()), characters=_BLANKS)
    made = _cast(_SPELLED[_OF[kind if kind in _OF else "decimal"].types[0]](text), wanted)
    if kind in ("float", "double") and pc.any(pc.is_inf(made)).as_py():
        is_said = pc.match_substring_regex(texts, "[iI]")
        made = pc.if_else(pc.and_(pc.is_inf(made), pc.invert(is_said)), pa.scalar(None, wanted), made)
    return made


def first_bad(texts: pa.BinaryArray, made: pa.Array) -> int | None:
    """Return the index of the first text that was no value."""
    bad = pc.indices_nonzero(pc.and_(pc.is_valid(texts), pc.is_null(made)))
    return int(bad[0].as_py()) if len(bad) else None


def _cast(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast all at once, or, where that fails, each half: few of them are out of range."""
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        half = len(texts) // 2
        if not half:
            return pa.nulls(1, wanted)
        return pa.concat_arrays([_cast(texts[:half], wanted), _cast(texts[half:], wanted)])


def _replaced(text: pa.Array, *pairs: tuple[str, str]) -> pa.Array:
    for found, put in pairs:
        text = pc.replace_substring_regex(text, found, put)
    return text


def _of_number(text: pa.Array) -> pa.Array:
    return _replaced(text, ("\\A[+]", ""))


def _of_decimal(text: pa.Array) -> pa.Array:
    return _replaced(text, ("([.][0-9]*[1-9])0+\\z", "\\1"), ("[.]0+\\z", ".0"))


def _of_time(text: pa.Array) -> pa.Array:
    return _replaced(text, ("([.][0-9]{6})[0-9]+", "\\1"))


def _of_moment(text: pa.Array) -> pa.Array:
    text = _replaced(_of_time(text), ("\\A(.{10})\\z", "\\1T00:00"))
    is_zoned = pc.match_substring_regex(text, _ZONED)
    return pc.if_else(is_zoned, text, pc.binary_join_element_wise(text, "Z", ""))


def _of_boolean(text: pa.Array) -> pa.Array:
    return pc.match_substring_regex(text, _around(_TRUE))


_SPELLED: dict[str, Callable[[pa.Array], pa.Array]] = {
    "boolean": _of_boolean,
    "tinyint": _of_number,
    "float": _of_number,
    "decimal": _of_decimal,
    "date": lambda text: text,
    "timestamp": _of_moment,
    "timestamp_ntz": _of_time,
}


# -- Spark


def expression(text: str, kind: str) -> str:
    """Return Spark's expression of a text as this type; null where it is none. `text`: an expression of a string."""
    if kind == "string":
        return f"case when is_valid_utf8({text}) then {text} end"
    plain = f"trim(both {literal(_BLANKS)} from {text})"
    is_one = f"rlike({text}, {literal(pattern(kind))})"
    if kind == "boolean":
        return f"case when {is_one} then rlike({text}, {literal(_around(_TRUE))}) end"
    made = f"try_cast({_SPARKS[kind](plain) if kind in _SPARKS else plain} as {kind})"
    if kind in ("float", "double"):
        is_one = f"{is_one} and (abs({made}) <> {kind}('infinity') or rlike({text}, '[iI]'))"
    return f"case when {is_one} then {made} end"


def literal(words: str) -> str:
    """Return a text as it is in SQL, whatever is in it and whatever the session says of backslashes."""
    return f"cast(X'{words.encode().hex()}' as string)"


def _sparks_time(plain: str) -> str:
    """Return a time with its seconds, which Spark wants where there is a zone."""
    with_seconds = f"concat(left({plain}, 16), ':00', substr({plain}, 17))"
    return f"case when substr({plain}, 17, 1) = ':' then {plain} else {with_seconds} end"


def _sparks_moment(plain: str) -> str:
    return (
        f"case when length({plain}) = 10 then concat({plain}, 'T00:00:00Z') "
        f"when rlike({plain}, {literal(_ZONED)}) then {_sparks_time(plain)} else concat({_sparks_time(plain)}, 'Z') end"
    )


_SPARKS: dict[str, Callable[[str], str]] = {"timestamp": _sparks_moment}
