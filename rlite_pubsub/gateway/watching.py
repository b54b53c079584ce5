"""What those who watch a server ask for: the pages answer it, and it is declared here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request as PageRequest
from starlette.responses import Response

from rlite_pubsub.gateway.http.operation import STREAM, Request, as_json, serves
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import SENT, TEXT, record

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_STATUS = {"type": "object", "required": ["status"], "properties": {"status": TEXT, "detail": TEXT}}


class Watching:
    """Of one server."""

    def __init__(self, pages: ASGIApp) -> None:
        self._pages = pages

    @serves(
        "GET",
        "/healthz",
        "Whether the last write could be committed, and the last sync reach the disk",
        tag="watching",
        answers=as_json(_STATUS),
        failing=as_json(_STATUS),
        is_open=True,
    )
    async def _healthz(self, request: Request) -> None:
        await self._pages(request.scope, request.receive, request.send_all)

    @serves(
        "GET",
        "/readyz",
        "Whether the store can be read",
        tag="watching",
        answers=as_json(_STATUS),
        failing=as_json(_STATUS),
        is_open=True,
    )
    async def _readyz(self, request: Request) -> None:
        await self._pages(request.scope, request.receive, request.send_all)

    @serves("GET", "/metrics", "Metrics, as Prometheus reads them", tag="watching", answers={"text/plain": TEXT})
    async def _metrics(self, request: Request) -> None:
        await self._pages(request.scope, request.receive, request.send_all)

    @serves(
        "GET",
        "/api/stats",
        "A sample of what goes on",
        about="With `Accept: text/event-stream` a stream of one sample a second, which begins with the last of them.",
        tag="watching",
        answers={"application/json": record(ms={"type": "integer"}), STREAM: SENT},
    )
    async def _stats(self, request: Request) -> None:
        await self._pages(request.scope, request.receive, request.send_all)


async def refused(request: PageRequest, failure: Exception) -> Response:
    """What the pages refuse, said as all others say it."""
    assert isinstance(failure, HTTPException)
    problem = Problem(failure.status_code, failure.detail, f"{request.method} {request.url.path} is not answered here.")
    return Response(problem.body, problem.status, failure.headers, "application/problem+json")
