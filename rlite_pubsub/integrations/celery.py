"""Celery with no server: `rlite:///path/of/the/store` as broker and result backend. To import it is to register both.

    import rlite_pubsub.integrations.celery

    app = Celery("tasks", broker="rlite:///./store", backend="rlite:///./store")

The broker is kombu's transport (kombu.py); results are kept as Celery keeps them in Redis, under the same keys.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from celery.app.backends import BACKEND_ALIASES
from celery.backends import redis as over_redis

import rlite_pubsub.integrations.kombu  # noqa: F401  (the broker)
from rlite_pubsub.embedded.client import Redis, pool_of
from rlite_pubsub.embedded.options import SCHEME, options_of
from rlite_pubsub.embedded.polled import PolledConnection

if TYPE_CHECKING:
    from redis.connection import ConnectionPool


class ResultConsumer(over_redis.ResultConsumer):
    """Celery's, which polls a descriptor of its connection."""

    def cancel_for(self, task_id: str) -> None:
        """Results are forgotten by their finalizers, also when the interpreter has ended and the store is closed."""
        if not sys.is_finalizing():
            super().cancel_for(task_id)


class Backend(over_redis.RedisBackend):
    """Celery's backend for Redis."""

    ResultConsumer = ResultConsumer

    def _params_from_url(self, url: str, defaults: dict[str, Any]) -> dict[str, Any]:
        kept = ("client_name", "max_connections", "socket_timeout", "retry_on_timeout")
        options = {name: defaults[name] for name in kept if defaults.get(name) is not None}
        return {**options, **options_of(url)}

    def _get_pool(self, **params: Any) -> ConnectionPool:
        pool = pool_of(params.pop("path"), int(params.pop("db", 0)), params)
        pool.connection_class = PolledConnection
        return pool

    def _get_client(self) -> Any:
        return Redis


BACKEND_ALIASES[SCHEME] = f"{__name__}:{Backend.__name__}"
