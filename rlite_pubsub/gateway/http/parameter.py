"""The parameters of a query: each is declared once, and is read and described by that declaration.

A value outside its schema is refused, and so are a repeated one where only one is allowed, and a name that is not
declared: whoever misspells a filter would get everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import Schema

T = TypeVar("T")
Query: TypeAlias = Sequence[tuple[str, str]]

DEFAULT_COUNT = 100
MAX_COUNT = 1000


class Parameter(Generic[T]):
    """One of a query."""

    is_repeated = False

    def __init__(
        self, name: str, about: str, schema: Schema, read: Callable[[str], T], default: T, *, is_required: bool = False
    ) -> None:
        """`read` raises ValueError, whose text says what is expected."""
        self.name = name
        self.about = about
        self.schema = schema
        self.is_required = is_required
        self._read = read
        self._default = default

    def of(self, query: Query) -> T:
        """Return its value. Raises Problem."""
        values = [value for name, value in query if name == self.name]
        if len(values) > 1:
            raise Problem(400, f"Bad {self.name}", f"{self.name} may be given only once.")
        if not values:
            return self._default
        try:
            return self._read(values[0])
        except ValueError as failure:
            raise Problem(400, f"Bad {self.name}", f"{failure}") from failure


class Several(Parameter[tuple[str, ...]]):
    """One that may be said several times."""

    is_repeated = True

    def __init__(self, name: str, about: str, schema: Schema) -> None:
        super().__init__(name, about, schema, lambda value: (value,), ())

    def of(self, query: Query) -> tuple[str, ...]:
        return tuple(value for name, value in query if name == self.name)


def _number(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 9 and 1 <= int(word) <= MAX_COUNT):
        raise ValueError(f"count is a number from 1 to {MAX_COUNT}.")
    return int(word)


def _encoding(word: str) -> str:
    if word not in ("text", "base64"):
        raise ValueError("encoding is text or base64.")
    return word


COUNT = Parameter(
    "count",
    "The most to return.",
    {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "default": DEFAULT_COUNT},
    _number,
    DEFAULT_COUNT,
)
AFTER = Parameter("after", "The `next` of the previous page.", {"type": "string"}, str, "")
MATCH = Parameter("match", "Only names that match this glob pattern, as in PSUBSCRIBE.", {"type": "string"}, str, "*")
ENCODING = Parameter(
    "encoding",
    "`base64`: every value is sent and received as base64. With `text` only values that are not UTF-8 are, as an "
    "object "
    '`{"base64": "…"}`.',
    {"type": "string", "enum": ["text", "base64"], "default": "text"},
    _encoding,
    "text",
)


def check_names(query: Query, known: Collection[str]) -> None:
    """Raise Problem for a parameter that is not one of these."""
    for name, _ in query:
        if name not in known:
            others = f"This path knows {', '.join(known)}." if known else "This path has none."
            raise Problem(400, "Unknown parameter", f"There is no parameter {json.dumps(name[:80])} here. {others}")


class ListSpan(NamedTuple):
    """The part of a list that is asked for."""

    match: str
    after: str
    at_most: int


def list_span_of(query: Query) -> ListSpan:
    """Return the part of a list that is asked for. Raises Problem."""
    return ListSpan(MATCH.of(query), AFTER.of(query), COUNT.of(query))
