"""Connections to the server, or the store's folder opened, by each process of Spark's for as long as it lives.

Workers live on between queries and their connections are cut when idle, or when the server is restarted: each
request is sent again then, for a while. All requests of the pipeline may be: they read, or what they write is under a
name of its own, or (commit) is known to have been done.

A folder is shared by all of these processes, and by a server that may have it, as by any other programs. Nobody makes a
store by looking for one: only the driver of a write does (`make_store`).
"""

from __future__ import annotations

import socket
from functools import lru_cache
from pathlib import Path
from typing import Any

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import SourceOptions

RETRIES = 8
"""About 5 s."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_CONNECT_TIMEOUT_S = 10.0
_REPLY_TIMEOUT_S = 300.0
"""A commit waits for the disk."""


def retry() -> Retry:
    """Return what is retried, and how often."""
    return Retry(
        ExponentialBackoff(cap=_LONGEST_PAUSE_S, base=_FIRST_PAUSE_S),
        RETRIES,
        supported_errors=(redis.ConnectionError, redis.TimeoutError),
    )


def connect(options: SourceOptions) -> redis.Redis:
    """The client of this process for this server or folder. Raises OptionRefused where the password can't be read, or
    there is no store."""
    if options.url is None:
        raise OptionRefused("url: coldPath alone is history without a server, which can answer nothing; say url, too")
    if options.folder is not None:
        return _store(options.folder)
    return _client(options.url, options.username, options.password_file)


def make_store(options: SourceOptions) -> None:
    """Create a store in a folder that is to be written to and has none yet. Called by the driver."""
    if options.folder is not None:
        from rlite_pubsub.embedded.client import from_url

        with from_url(options.folder) as client:
            client.ping()


def ask(client: redis.Redis, *words: Any) -> Any:
    """Return a command's reply. Raises what redis-py raises."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


def ask_for_map(client: redis.Redis, *words: Any) -> dict[bytes, Any]:
    """Return the same, where the reply is a map, which lies flat in RESP2."""
    told = ask(client, *words)
    return told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))


@lru_cache(maxsize=16)
def _client(url: str, username: str | None, password_file: str | None) -> redis.Redis:
    more = {}
    if username is not None:
        more["username"] = username
    if password_file is not None:
        try:
            more["password"] = Path(password_file).read_text().rstrip("\r\n")
        except OSError as failure:
            raise OptionRefused(f"passwordFile: can't read {password_file}: {failure.strerror}") from failure
    timeouts = {} if url.startswith("unix://") else {"socket_connect_timeout": _CONNECT_TIMEOUT_S}
    client = redis.Redis.from_url(
        url, retry=retry(), socket_timeout=_REPLY_TIMEOUT_S, protocol=2, client_name="spark", **timeouts, **more
    )
    assert isinstance(client, redis.Redis)
    return client


@lru_cache(maxsize=16)
def _store(url: str) -> redis.Redis:
    from rlite_pubsub.embedded.client import from_url
    from rlite_pubsub.embedded.options import options_of

    folder = Path(options_of(url)["path"])
    if not (folder / "live.mdb").exists():
        raise OptionRefused(
            f"url: there is no store in {folder} on {socket.gethostname()}; a folder is for executors on the machine "
            "that has it (local mode), and a server is redis://host:port"
        )
    return from_url(url, protocol=2, client_name="spark")
