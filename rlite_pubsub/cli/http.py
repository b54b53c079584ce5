"""A server's HTTP, as the command line asks it.

A token comes from a file or from the environment: an argument can be seen by everybody on the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from rlite_pubsub.cli.ending import CommandFailed

DEFAULT = "http://127.0.0.1:8080"
TOKEN = "RLITE_TOKEN"
SILENCE_S = 60.0
"""A connection that says nothing for so long is taken for dead; a stream has heartbeats every 15 s."""
_PORTS = {"http": 80, "https": 443}


class Refused(CommandFailed):
    """The server has answered, and does not do it."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"the server answers {status}: {what}")
        self.status = status


def add_http(parser: argparse.ArgumentParser) -> None:
    """The options of an `HttpPlace`."""
    parser.add_argument("--url", default=DEFAULT, help=f"where the server speaks HTTP (default: {DEFAULT})")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help=f"a bearer token is in it (otherwise in {TOKEN})"
    )


class HttpPlace:
    """A server by its URL. Raises CommandFailed and OSError."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.url: str = arguments.url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
            raise CommandFailed(f"{self.url} is no URL like {DEFAULT}")
        if parts.username is not None or parts.password is not None:
            raise CommandFailed(f"a URL can be seen by others: the token belongs into a --token-file or {TOKEN}")
        try:
            self._port = parts.port or _PORTS[parts.scheme]
        except ValueError as failure:
            raise CommandFailed(f"{self.url}: {failure}") from failure
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname
        self._path = parts.path
        self._token = _token(arguments.token_file)

    def ask(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        headers: dict[str, str],
        body: bytes | None = None,
    ) -> http.client.HTTPResponse:
        """An answer, which is 200. Raises Refused, OSError and HTTPException."""
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=SILENCE_S)
        if self._token is not None:
            headers = headers | {"Authorization": f"Bearer {self._token}"}
        target = self._path + path + ("?" + urlencode(query) if query else "")
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise Refused(response.status, _problem(response))
        except BaseException:
            connection.close()
            raise
        return response


def _token(file: Path | None) -> str | None:
    token = os.environ.get(TOKEN) if file is None else file.read_text()
    if token is None or not token.strip():
        if file is not None:
            raise CommandFailed(f"there is no token in {file}")
        return None
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise CommandFailed(f"the token in {file or TOKEN} is not one line of ASCII")
    return token


def _problem(response: http.client.HTTPResponse) -> str:
    body = response.read(65536)
    try:
        said = json.loads(body)
        return str(said["detail"])
    except (ValueError, TypeError, KeyError):
        return response.reason or body[:200].decode(errors="replace")
