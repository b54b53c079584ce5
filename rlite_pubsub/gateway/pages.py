"""What is asked for now and then: probes and metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.commands.instance import Instance
    from rlite_pubsub.delivery.keyspace import Keyspace
    from rlite_pubsub.gateway.metrics import Metrics


def pages(instance: Instance, keyspace: Keyspace, metrics: Metrics, turn_soon: Callable[[], None]) -> Starlette:
    """The application for all paths but those of events, topics and channels."""

    async def healthz(request: Request) -> Response:
        """Whether the last turn that wrote could be committed."""
        failure = instance.write_failure
        if failure is not None:
            return JSONResponse({"status": "failing", "detail": str(failure)}, 503)
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        """Whether the store can be read here and now."""
        try:
            keyspace.environment.last_commit()
        except StoreError as failure:
            return JSONResponse({"status": "unready", "detail": str(failure)}, 503)
        return JSONResponse({"status": "ready"})

    async def all_metrics(request: Request) -> Response:
        turn_soon()  # for what is read is read in a turn
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST, "cache-control": "no-store"})

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", all_metrics)])
