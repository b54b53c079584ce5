"""The target of a link: a URL, and the connections to it, which redis-py makes.

    redis://[user:password@]host[:port][/database]       also rediss:// (TLS), unix://path, and redis-py's options
    redis+cluster://[user:password@]host[:port],host...  any of the nodes of a cluster
    redis+sentinel://[user:password@]host[:port],host.../service[/database]
"""

from __future__ import annotations

import functools
import re
from binascii import crc_hqx
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from redis.asyncio.cluster import RedisCluster
from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection, parse_url
from redis.asyncio.sentinel import Sentinel

from rlite_pubsub.engine.arguments.link_words import BadLink, shown
from rlite_pubsub.links.link_wire import (
    AnyConnection,
    Pushed,
    RawConnection,
    RawTlsConnection,
    RawUnixConnection,
    ServerStream,
    ServerWire,
)

CONNECT_SECONDS: Final = 5.0
SLOTS: Final = 16384
Address = tuple[str, int]
Answer = TypeVar("Answer")


class BadTarget(ValueError):
    """A URL that leads nowhere."""


def slot_of(name: bytes) -> int:
    """Return the slot of a key, or a sharded channel, in a cluster."""
    tag = tag_of(name)
    return crc_hqx(tag, 0) % SLOTS


def tag_of(name: bytes) -> bytes:
    """Return the part of a name that decides its slot."""
    start = name.find(b"{")
    end = name.find(b"}", start + 1) if start >= 0 else -1
    return name[start + 1 : end] if end > start + 1 else name


def tag_in(slot: int) -> bytes:
    """Return a text of digits that has this slot."""
    return _tags()[slot]


@functools.cache
def _tags() -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    number = 0
    while len(found) < SLOTS:
        text = b"%d" % number
        found.setdefault(slot_of(text), text)
        number += 1
    return found


class Target:
    """The parts of a URL."""

    def __init__(self, url: str) -> None:
        """Raises BadTarget."""
        try:
            self.shown = shown(url)
        except BadLink as refusal:
            raise BadTarget(str(refusal)) from refusal
        parts = urlsplit(url)
        scheme, _, self.form = parts.scheme.partition("+")
        self._service = ""
        try:
            if self.form:
                user, at, nodes = parts.netloc.rpartition("@")
                default = 26379 if self.form == "sentinel" else 6379
                self._nodes = [_address(node, default) for node in nodes.split(",") if node]
                path = parts.path
                if self.form == "sentinel":
                    _, self._service, path = (f"{parts.path}/".split("/", 2) + [""])[:3]
                    path = f"/{path.strip('/')}"
                    if not self._service:
                        raise BadTarget("the name of the service is missing: redis+sentinel://host:port/service")
                if not self._nodes:
                    raise BadTarget("the URL names no host")
                host, port = self._nodes[0]
                url = urlunsplit((scheme, f"{user}{at}{_netloc(host)}:{port}", path, parts.query, ""))
            found: dict[str, Any] = dict(parse_url(url))
        except ValueError as failure:
            raise BadTarget(re.sub(r"'[^']*'", "...", str(failure)) or "the URL can't be read") from None
        kind = found.pop("connection_class", None)
        if not found.get("host") and kind is not UnixDomainSocketConnection:
            raise BadTarget("the URL names no host")
        self._class: type[AnyConnection] = RawConnection
        if kind is not None:
            self._class = RawTlsConnection if issubclass(kind, SSLConnection) else RawUnixConnection
        self._options = found | {"protocol": 3, "socket_connect_timeout": CONNECT_SECONDS, "socket_timeout": None}
        self._cluster: RedisCluster | None = None

    @property
    def is_cluster(self) -> bool:
        return self.form == "cluster"

    async def open(
        self, pushed: Pushed | None = None, key: bytes | None = None, name: str = "", at: Address | None = None
    ) -> ServerWire:
        """A wire to the server; in a cluster, to the one at this address, or that has this key. Raises redis-py's
        errors, and OSError."""
        options = self._options | ({"client_name": name} if name else {})
        if at is not None:
            options["host"], options["port"] = at
            options.pop("db", None)
        elif self.form == "sentinel":
            options["host"], options["port"] = await self._master()
        elif self.form == "cluster":
            options["host"], options["port"] = await self._asked(partial(_node, key))
            options.pop("db", None)
        connection = self._class(**options)
        await connection.connect()  # type: ignore[no-untyped-call]
        return ServerWire(ServerStream(connection), pushed)

    async def _master(self) -> tuple[str, int]:
        timeouts = {"socket_timeout": CONNECT_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}
        sentinel = Sentinel(self._nodes, sentinel_kwargs=timeouts)  # type: ignore[no-untyped-call]
        try:
            host, port = await sentinel.discover_master(self._service)
            return str(host), int(port)
        finally:
            for each in sentinel.sentinels:
                await each.aclose()

    async def owners(self) -> dict[int, Address]:
        """Return the present owner of each slot of the cluster. Raises redis-py's errors, and OSError."""
        return await self._asked(_owners)

    async def _asked(self, question: Callable[[RedisCluster], Answer]) -> Answer:
        """Ask the cluster, each time again, because slots move."""
        secrets = {word: self._options[word] for word in self._options if word in ("username", "password")}
        tls = {word: value for word, value in self._options.items() if word.startswith("ssl_")}
        if self._class is RawTlsConnection:
            tls["ssl"] = True
        failure: Exception | None = None
        for host, port in self._nodes:
            cluster = RedisCluster(host=host, port=port, socket_connect_timeout=CONNECT_SECONDS, **secrets, **tls)
            try:
                await cluster.initialize()
                return question(cluster)
            except Exception as error:  # the next node may know
                failure = error
            finally:
                await cluster.aclose()
        assert failure is not None
        raise failure


def _node(key: bytes | None, cluster: RedisCluster) -> Address:
    node: Any = cluster.get_default_node()
    if key is not None:
        node = cluster.nodes_manager.get_node_from_slot(slot_of(key))
    return str(node.host), int(node.port)


def _owners(cluster: RedisCluster) -> dict[int, Address]:
    found = cluster.nodes_manager.slots_cache
    return {slot: (str(nodes[0].host), int(nodes[0].port)) for slot, nodes in found.items() if nodes}


def _address(node: str, default: int) -> tuple[str, int]:
    found = urlsplit(f"//{node}")
    if not found.hostname:
        raise BadTarget("the URL names no host")
    return unquote(found.hostname), found.port or default


def _netloc(host: str) -> str:
    return f"[{host}]" if ":" in host else host
