"""The operations of the API, declared beside the code that answers: routes, OPTIONS, and the OpenAPI document follow.

    @serves("GET", "/api/patterns", "Patterns with subscribers", parameters=(MATCH,), answers=as_json(PATTERNS))
    async def _patterns(self, request: Request) -> object: …

What a handler returns is said as JSON; None: it has answered. It raises Problem, and StoreError.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from rlite_pubsub.gateway.http.parameter import Parameter, check_names
from rlite_pubsub.gateway.http.request import Headers, Receive, Scope, Send, header, parameters, whole_body
from rlite_pubsub.gateway.http.schema import Schema
from rlite_pubsub.gateway.http.target import RequestTarget

STREAM = "text/event-stream"
ACCESS_TOKEN = "access_token"
"""In the query of a GET: what guard.py reads there."""


@dataclass(slots=True)
class Request:
    """One that has been let in."""

    scope: Scope
    receive: Receive
    send: Send
    headers: Headers
    """To be sent with the answer."""
    target: RequestTarget
    max_body_bytes: int
    _query: list[tuple[str, str]] | None = field(default=None, init=False)

    @property
    def client(self) -> tuple[str, int] | None:
        """The peer's address and port, where they are known."""
        found: tuple[str, int] | None = self.scope.get("client")
        return found

    @property
    def query(self) -> list[tuple[str, str]]:
        """The part after the `?`. Raises Problem."""
        if self._query is None:
            self._query = parameters(self.scope["query_string"])
        return self._query

    @property
    def content_type(self) -> str:
        """The type of the body, without parameters."""
        said = header(self.scope, b"content-type") or b""
        return said.decode("latin-1").partition(";")[0].strip().lower()

    @property
    def is_head(self) -> bool:
        """True if only the answer's headers are asked for."""
        return bool(self.scope["method"] == "HEAD")

    async def send_head(self, headers: Headers) -> None:
        """The head of an answer whose body has no known length."""
        await self.send({"type": "http.response.start", "status": 200, "headers": [*headers, *self.headers]})
        await self.send({"type": "http.response.body", "body": b""})

    async def body(self) -> bytes:
        """Return the body. Raises Problem."""
        return await whole_body(self.scope, self.receive, self.max_body_bytes)


Handler: TypeAlias = Callable[[Any, Request], Awaitable[object]]
Contents: TypeAlias = Mapping[str, Schema]
"""Content type -> what it is."""


class Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    summary: str
    handler: Handler
    """Called with the object in whose class it stands."""
    answers: Contents
    """Of 200."""
    tag: str
    about: str
    parameters: tuple[Parameter[Any], ...]
    headers: Mapping[str, str]
    """What else is looked at in the request's headers, and what it means."""
    body: Contents
    needs_body: bool
    refusals: tuple[int, ...]
    """Statuses that are not those of all."""
    failing: Contents
    """What 503 may have that is no problem's text."""
    is_open: bool
    """To all."""
    known: tuple[str, ...]
    """The names of all parameters that its query may have."""

    def check(self, query: bytes) -> None:
        """Raise Problem if a query has a parameter that this operation does not know."""
        if query:
            check_names(parameters(query), self.known)


class Served(NamedTuple):
    """An operation, and whose it is."""

    operation: Operation
    owner: object

    def __call__(self, request: Request) -> Awaitable[object]:
        return self.operation.handler(self.owner, request)


Table: TypeAlias = dict[str, dict[str, Served]]
"""Path -> method -> what answers."""


def serves(
    method: str,
    path: str,
    summary: str,
    *,
    answers: Contents,
    tag: str = "",
    about: str = "",
    parameters: tuple[Parameter[Any], ...] = (),
    headers: Mapping[str, str] | None = None,
    body: Contents | None = None,
    needs_body: bool = False,
    refusals: tuple[int, ...] = (),
    failing: Contents | None = None,
    is_open: bool = False,
    undeclared: tuple[str, ...] = (),
) -> Callable[[Handler], Operation]:
    """Declare a handler. `undeclared`: parameters that are not in the document, because no schema can say what they
    mean."""
    known = (*(each.name for each in parameters), *undeclared, *((ACCESS_TOKEN,) if method == "GET" else ()))

    def declare(handler: Handler) -> Operation:
        return Operation(
            method,
            path,
            summary,
            handler,
            answers,
            tag or path.split("/")[2],
            about,
            parameters,
            headers or {},
            body or {},
            needs_body,
            refusals,
            failing or {},
            is_open,
            known,
        )

    return declare


def as_json(schema: Schema) -> Contents:
    """Return an answer that is JSON."""
    return {"application/json": schema}


def table(owners: Iterable[object]) -> Table:
    """Return all that these answer."""
    found: Table = {}
    for owner in owners:
        for each in vars(type(owner)).values():
            if isinstance(each, Operation):
                found.setdefault(each.path, {})[each.method] = Served(each, owner)
    return found
