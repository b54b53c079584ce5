"""The fields of entries that are columns: `option("fields", "item, price double, id as order_id")`.

    FIELD [TYPE] [as COLUMN [TYPE]]         string, if no type is said

A field's name may stand in backticks, and must where it holds a comma, a blank or a backtick (which is doubled there).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rlite_pubsub.pipeline.errors import OptionRefused

TYPES = (
    "string",
    "binary",
    "boolean",
    "byte",
    "tinyint",
    "short",
    "smallint",
    "int",
    "integer",
    "long",
    "bigint",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
)
"""And decimal(precision, scale)."""
_NAME = r"(?:`(?:[^`]|``)+`|[^`,\s]+)"
_TYPE = r"(?:decimal\s*\(\s*[0-9]{1,2}\s*,\s*[0-9]{1,2}\s*\)|[a-z_]+)"
_ONE = re.compile(
    rf"\s*(?P<field>{_NAME})(?:\s+(?!as\s)(?P<type>{_TYPE}))?(?:\s+as\s+(?P<column>{_NAME})(?:\s+(?P<late>{_TYPE}))?)?"
    r"\s*(?P<end>,|$)",
    re.IGNORECASE,
)


class FieldColumn(NamedTuple):
    """A field of entries, as a column."""

    field: str
    column: str
    type: str = "string"


def field_columns(text: str) -> tuple[FieldColumn, ...]:
    """Return the named columns, in order. Raises OptionRefused."""
    found: list[FieldColumn] = []
    at = 0
    while at < len(text.rstrip()):
        one = _ONE.match(text, at)
        if one is None:
            raise OptionRefused(f"fields: is like `item, price double, id as order_id`, not {text[at:].strip()!r}")
        kind = re.sub(r"\s", "", (one["late"] or one["type"] or "string").lower())
        if kind not in TYPES and not kind.startswith("decimal("):
            raise OptionRefused(f"fields: there is no type {kind!r}; there are {', '.join(TYPES)} and decimal(p,s)")
        if one["late"] and one["type"]:
            raise OptionRefused(f"fields: {one[0].strip()!r} has two types")
        field = _plain(one["field"])
        found.append(FieldColumn(field, _plain(one["column"]) if one["column"] else field, kind))
        at = one.end()
    return tuple(found)


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
