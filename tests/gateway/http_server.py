"""A server that speaks HTTP, as a process of its own."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import redis
from patience import PATIENCE_S
from ports import free_port
from server_process import ServerProcess


class HttpServer(ServerProcess):
    """`rlite-pubsub serve --http-port …`"""

    def __init__(self, folder: Path, *flags: str, http_port: int | None = None, **options: Any) -> None:
        self.http_port = free_port() if http_port is None else http_port
        super().__init__(folder, "--http-port", str(self.http_port), *flags, **options)

    def ask(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            return response.status, {name.lower(): text for name, text in response.getheaders()}, response.read()
        finally:
            connection.close()

    def post(self, type: str, body: bytes | str) -> str:
        """Store an event; its id."""
        content = body.encode() if isinstance(body, str) else body
        status, _, answer = self.ask("POST", f"/api/events?type={type}", content)
        assert status == 200, answer
        return str(json.loads(answer)["id"])

    def redis(self) -> redis.Redis:
        return redis.Redis(port=self.port)
