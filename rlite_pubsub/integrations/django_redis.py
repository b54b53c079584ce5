"""django-redis over a folder, with no server.

    CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": "rlite:///srv/site/store",
            "OPTIONS": {"CONNECTION_FACTORY": "rlite_pubsub.integrations.django_redis.ConnectionFactory"},
        }
    }
"""

from __future__ import annotations

from typing import Any

from django_redis.pool import ConnectionFactory as OverSockets

from rlite_pubsub.embedded.client import Redis, pool_of
from rlite_pubsub.embedded.options import options_of


class ConnectionFactory(OverSockets):
    """django-redis's factory. LOCATION is a URL; CONNECTION_POOL_KWARGS are keywords of the client."""

    def make_connection_params(self, url: str | None) -> dict[str, Any]:
        return {"url": url}

    def get_connection(self, params: dict[str, Any]) -> Redis:
        return Redis(connection_pool=self.get_or_create_connection_pool(params))

    def get_connection_pool(self, params: dict[str, Any]) -> Any:
        options = {**self.pool_cls_kwargs, **options_of(params["url"])}
        return pool_of(options.pop("path"), int(options.pop("db", 0)), options)
