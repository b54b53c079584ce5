"""The entrance of every request: access is checked, and the request is passed to its handler. Undeclared paths are left
to the pages. What is not declared is left to the pages.

Promise: by one reading of the path (target.py) a request is both let in and answered, so that no name can be taken for
another between the two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rlite_pubsub.gateway.access.guard import Guard
from rlite_pubsub.gateway.access.rights import Visit
from rlite_pubsub.gateway.http.openapi import OpenApi
from rlite_pubsub.gateway.http.operation import Request, Served
from rlite_pubsub.gateway.http.request import (
    BodyTooLarge,
    Headers,
    Problem,
    Receive,
    Scope,
    Send,
    answer,
    say,
    tell,
    tell_sender,
)
from rlite_pubsub.gateway.http.target import API, EVENTS, target_of
from rlite_pubsub.gateway.pages import Pages
from rlite_pubsub.storage.errors import StoreError

log = logging.getLogger("rlite_pubsub")

_RAW_EVENTS = EVENTS.encode()
_EVENTS = target_of(_RAW_EVENTS)


class Entrance:
    """The server's one ASGI application."""

    def __init__(self, guard: Guard, api: OpenApi, pages: Pages, max_body_bytes: Callable[[], int]) -> None:
        self._guard = guard
        self._operations = api.operations
        self._post = api.operations[EVENTS]["POST"]
        self._pages = pages
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: Headers = []
        try:
            headers = self._guard.headers(scope)
            target = _EVENTS if scope["raw_path"] == _RAW_EVENTS else target_of(scope["raw_path"])
            scope["target"] = target
            visit = self._guard.check(scope)
            if visit is None:
                await self._grant(Request(scope, receive, send, headers, target, self._max_body_bytes()))
            else:
                await self._receive(visit, Request(scope, receive, send, headers, target, self._max_body_bytes()))
        except BodyTooLarge as problem:
            await tell_sender(send, receive, problem, headers)
        except Problem as problem:
            await tell(send, problem, headers)
        except StoreError as failure:
            log.warning("%s %s: %s", scope["method"], scope["path"], failure)
            await tell(send, Problem(503, "Store unavailable", str(failure)), headers)

    async def _receive(self, visit: Visit, request: Request) -> None:
        """Receive like `_grant`, as long as the user may."""
        request.receive = visit.receiving(request.receive)
        request.scope["user"] = visit.user_name
        try:
            await self._grant(request)
        finally:
            self._guard.leave(visit)

    async def _grant(self, request: Request) -> None:
        scope, send, headers = request.scope, request.send, request.headers
        method = scope["method"]
        if method == "POST" and request.target is _EVENTS:  # most often
            await self._post(request)
            return
        served = self._operations.get(request.target.path)
        if method == "OPTIONS":
            allow = [(b"allow", _allowed(served).encode())] if served else []
            await answer(send, 204, [*self._guard.preflight(scope), *allow], b"")
        elif served is not None:
            answering = served.get("GET" if method == "HEAD" else method)
            if answering is None:
                names = _allowed(served)
                raise Problem(405, "Method not allowed", f"This path supports {names}.", [(b"allow", names.encode())])
            answering.operation.check(scope["query_string"])
            said = await answering(request)
            if said is not None:
                await say(send, headers, said)
        elif scope["raw_path"].startswith(API):
            raise Problem(404, "Not found", "GET /openapi.json lists all paths.")
        else:
            await self._pages.show(request)


def _allowed(served: dict[str, Served]) -> str:
    methods = [*served, "OPTIONS"]
    return ", ".join(["GET", "HEAD", *(each for each in methods if each != "GET")] if "GET" in served else methods)
