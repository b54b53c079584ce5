"""What is asked for now and then: probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.commands.instance import Instance
    from rlite_pubsub.delivery.keyspace import Keyspace


def pages(instance: Instance, keyspace: Keyspace) -> Starlette:
    """The application for all paths but the event bus."""

    async def readyz(request: Request) -> JSONResponse:
        """Whether the store can be read here and now."""
        try:
            keyspace.environment.last_commit()
        except StoreError as failure:
            return JSONResponse({"status": "unready", "detail": str(failure)}, 503)
        return JSONResponse({"status": "ready"})

    return Starlette(routes=[Route("/readyz", readyz)])
