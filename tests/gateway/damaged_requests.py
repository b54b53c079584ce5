"""Requests of HTTP that were right once: what a fuzzer sends."""

from __future__ import annotations

import random

SEEDS = (
    b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"POST /api/events?type=tea HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhello",
    b"POST /api/events?type=tea HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;x=y\r\n!\r\n0\r\ntrailer: t\r\n\r\n",
    b"POST /api/channels/news HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\nabc",
    b"POST /api/topics/orders HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b'content-length: 27\r\n\r\n{"fields": {"item": "tea"}}',
    b"GET /api/events?typeMatcher=%5Eo(r%7Cx)%2B HTTP/1.1\r\nhost: localhost\r\nlast-event-id: 0-0\r\n\r\n",
    b"GET /api/topics/orders?start=-&count=10 HTTP/1.0\r\nauthorization: Basic YTpi\r\n\r\n",
    b"GET /api/channels?pattern=*%FF&pattern=%5B HTTP/1.1\r\nhost: [::1]:80\r\norigin: null\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\naccess-control-request-method: POST\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    b"PUT /api/groups/orders/g/pause HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n",
)
TOKENS = (
    b"\r\n", b"\n", b"\0", b" ", b":", b"\t", b"\r\n ", b"%", b"%zz", b"/../", b"//", b"?", b"&", b"#", b"\xff\xfe",
    b"HTTP/1.1", b"HTTP/9.9", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"content-length: -1\r\n",
    b"content-length: 99999999999999999999\r\n", b"content-length: 3\r\ncontent-length: 4\r\n",
    b"transfer-encoding: chunked, chunked\r\n", b"transfer-encoding: gzip\r\n", b"ffffffffffffffff\r\n",
    b"accept: text/event-stream\r\n", b"connection: close\r\n", b"x: " + b"y" * 70_000 + b"\r\n",
)  # fmt: skip


def damaged(chance: random.Random) -> bytes:
    """Some requests, joined and then damaged in a few places."""
    data = bytearray(b"".join(chance.choices(SEEDS, k=chance.randrange(1, 4))))
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(data) + 1)
        end = at + chance.choice((0, 0, 1, 2, 5, 30))
        kind = chance.randrange(5)
        if kind == 0:
            data[at:end] = chance.choice(TOKENS)
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = data[at:end] * chance.randrange(4)
        else:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(20)))
    return bytes(data)
