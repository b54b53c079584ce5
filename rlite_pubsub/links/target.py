"""The target of a link: a URL, and the connections to it, which redis-py makes.

redis://[user:password@]host[:port][/database]       also rediss:// (TLS), unix://path, and redis-py's options
redis+cluster://[user:password@]host[:port],host...  any of the nodes of a cluster
redis+sentinel://[user:password@]host[:port],host.../service[/database]
"""

from __future__ import annotations

import asyncio
import functools
import re
from binascii import crc_hqx
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection, parse_url
from redis.exceptions import ConnectionError, RedisError, ResponseError

from rlite_pubsub.embedded.bounded_parsers import ShortAsyncParser
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
_UNKNOWING: Final = (RedisError, OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, TimeoutError)
"""What asking a node or a sentinel may raise, one that answers nonsense among them."""
_DOWN: Final = frozenset((b"s_down", b"o_down"))
_INTRODUCTION_SECONDS: Final = 15.0


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
            options["host"], options["port"] = await self._node(key)
            options.pop("db", None)
        return await self._opened(self._class, options, pushed)

    async def _opened(
        self, kind: type[AnyConnection], options: dict[str, Any], pushed: Pushed | None = None
    ) -> ServerWire:
        """A wire that has said who it is. Raises redis-py's errors, OSError and TimeoutError."""
        connection = kind(**options, parser_class=ShortAsyncParser)
        try:
            async with asyncio.timeout(_INTRODUCTION_SECONDS):
                await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return ServerWire(ServerStream(connection), pushed)

    async def _said(self, kind: type[AnyConnection], options: dict[str, Any], *words: bytes) -> Any:
        """What is answered to one request. Raises redis-py's errors, OSError and TimeoutError."""
        wire = await self._opened(kind, options)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await wire.ask(*words)
        finally:
            await wire.close()

    async def _master(self) -> Address:
        """Where the service is by now, by the first sentinel that knows. Raises redis-py's errors, OSError."""
        failure: Exception = ConnectionError("no sentinel answers")
        for host, port in self._nodes:
            options = {"host": host, "port": port, "protocol": 2, "socket_connect_timeout": CONNECT_SECONDS}
            try:
                words = await self._said(RawConnection, options, b"SENTINEL", b"MASTER", self._service.encode())
                known = dict(zip(words[::2], words[1::2], strict=True))
                flags = known[b"flags"].split(b",")
                if b"master" in flags and not _DOWN.intersection(flags):
                    return known[b"ip"].decode(), int(known[b"port"])
                failure = ConnectionError(f"the master of {self._service} is down, says a sentinel")
            except (*_UNKNOWING, ResponseError) as error:  # the next one may know
                failure = error
        raise failure

    async def owners(self) -> dict[int, Address]:
        """Return the present owner of each slot of the cluster. Raises redis-py's errors, and OSError."""
        return (await self._cluster_seen())[1]

    async def _node(self, key: bytes | None) -> Address:
        """A node that answers; if there is a key, the one that has it. Raises redis-py's errors, and OSError."""
        answering, owners = await self._cluster_seen()
        if key is None:
            return answering
        owner = owners.get(slot_of(key))
        if owner is None:
            raise ConnectionError(f"no node has slot {slot_of(key)}")
        return owner

    async def _cluster_seen(self) -> tuple[Address, dict[int, Address]]:
        """Ask the cluster who has which slot, each time again, because slots move: the node that has answered, and
        what it says."""
        failure: Exception = ConnectionError("no node answers")
        for host, port in self._nodes:
            options = self._options | {"host": host, "port": port}
            options.pop("db", None)
            try:
                return (host, port), _slots(await self._said(self._class, options, b"CLUSTER", b"SLOTS"), host)
            except (*_UNKNOWING, ResponseError) as error:
                failure = error
        raise failure


def _slots(said: Any, host: str) -> dict[int, Address]:
    """`host`: of the node that said so; it need not say its own. Raises ValueError for what is no such answer."""
    found: dict[int, Address] = {}
    for first, last, node, *_ in said:
        if not 0 <= first <= last < SLOTS:
            raise ValueError("a node says that there are other slots")
        where = (node[0].decode() if node[0] else host), int(node[1])
        found.update(dict.fromkeys(range(first, last + 1), where))
    return found


def _address(node: str, default: int) -> tuple[str, int]:
    found = urlsplit(f"//{node}")
    if not found.hostname:
        raise BadTarget("the URL names no host")
    return unquote(found.hostname), found.port or default


def _netloc(host: str) -> str:
    return f"[{host}]" if ":" in host else host
