"""What is asked for now and then: the page and its files, probes, metrics and samples.

Promise: the page is the same for everybody and has no data in it, so that it may be shown to whoever has yet to say a
token; it loads nothing from elsewhere, runs no script but its own files, and is in nobody's frame. A browser asks each
time whether a file has changed, and is sent what has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlite_pubsub.gateway.stats import Stats
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.gateway.events.posting import Posting
    from rlite_pubsub.gateway.metrics import Metrics
    from rlite_pubsub.keyspace.keyspace import Keyspace

INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class _File(NamedTuple):
    """A file of the page, as it is sent."""

    content: bytes
    type: str
    etag: str


class Pages(Starlette):
    """The application for all paths but those of events, topics and channels."""

    def __init__(
        self, engine: Engine, keyspace: Keyspace, metrics: Metrics, stats: Stats, turn_soon: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._keyspace = keyspace
        self._metrics = metrics
        self._turn_soon = turn_soon
        self._files = _files()
        self.stats = stats
        super().__init__(
            routes=[
                Route("/", self._page),
                Route("/page/{name}", self._page),
                Route("/api/stats", stats, methods=["GET"]),
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                Route("/metrics", self._all_metrics),
            ]
        )
        self.router.redirect_slashes = False

    def close(self) -> None:
        """Every stream of samples ends."""
        self.stats.close()

    async def _page(self, request: Request) -> Response:
        file = self._files.get(request.path_params.get("name", INDEX))
        if file is None:
            raise HTTPException(404)
        headers = {"content-type": file.type, "cache-control": "no-cache", "etag": file.etag, **_SECURITY}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if file.etag in known:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)

    async def _healthz(self, request: Request) -> Response:
        """Whether the last turn that wrote could be committed, and what was committed last be brought to the disk."""
        failure = self._engine.turn.failure or self._keyspace.environment.sync_failure
        if failure is not None:
            return JSONResponse({"status": "failing", "detail": str(failure)}, 503)
        return JSONResponse({"status": "ok"})

    async def _readyz(self, request: Request) -> Response:
        """Whether the store can be read here and now."""
        try:
            self._keyspace.environment.last_commit()
        except StoreError as failure:
            return JSONResponse({"status": "unready", "detail": str(failure)}, 503)
        return JSONResponse({"status": "ready"})

    async def _all_metrics(self, request: Request) -> Response:
        self._turn_soon()  # for what is read is read in a turn
        headers = {"content-type": CONTENT_TYPE_LATEST, "cache-control": "no-store"}
        return Response(self._metrics.text(), headers=headers)


def pages(
    engine: Engine, keyspace: Keyspace, posting: Posting, metrics: Metrics, turn_soon: Callable[[], None]
) -> Pages:
    """Those of one server."""
    stats = Stats(engine, keyspace, lambda: posting.posted, turn_soon)
    return Pages(engine, keyspace, metrics, stats, turn_soon)


def _files() -> dict[str, _File]:
    found = {}
    for each in (resources.files("rlite_pubsub.gateway") / "page").iterdir():
        type = _TYPES.get(each.name.rpartition(".")[2])
        if type is not None:
            content = each.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[each.name] = _File(content, type, etag)
    return found
