"""A request and its answer, without a framework: what is asked for often goes no other way."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

MAX_PARAMETERS = 150
JSON = (b"content-type", b"application/json")


class Problem(Exception):
    """A request that is not granted: what is said of it (RFC 9457)."""

    def __init__(self, status: int, title: str, detail: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = list(headers)

    @property
    def body(self) -> bytes:
        """The body as it goes out."""
        return json.dumps({"title": self.title, "status": self.status, "detail": self.detail}).encode()


class BodyTooLarge(Problem):
    """A body of more than `http-max-body`. Its sender may be in the midst of it, unless all of it has come."""

    def __init__(self, max_bytes: int, *, is_whole: bool = False) -> None:
        detail = f"A body may have at most {max_bytes} bytes (http-max-body)."
        super().__init__(413, "Body too large", detail, [(b"connection", b"close")])
        self.is_whole = is_whole


async def answer(send: Send, status: int, headers: Headers, body: bytes, more: bool = False) -> None:
    """The whole of an answer. With `more`, whoever calls sends its end, which is empty."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def tell(send: Send, problem: Problem, headers: Headers, more: bool = False) -> None:
    """The answer that a request is not granted."""
    kind = (b"content-type", b"application/problem+json")
    await answer(send, problem.status, [kind, *problem.headers, *headers], problem.body, more)


async def tell_sender(send: Send, receive: Receive, problem: BodyTooLarge, headers: Headers) -> None:
    """As `tell`, and the connection stays open until the rest of the body has come and been thrown away, or
    `http-body-timeout` cuts it off. Most clients read no answer before they have sent everything: to close while they
    still send resets the connection, and they would see that and no answer."""
    await tell(send, problem, headers, more=True)
    while not problem.is_whole and (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.body", "body": b""})


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first of this name, which is in lower case."""
    for known, value in scope["headers"]:
        if known == name:
            return bytes(value)
    return None


def parameters(query: bytes) -> list[tuple[str, str]]:
    """Return the parameters after the `?`. Raises Problem."""
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError as failure:
        raise Problem(400, "Bad query", f"The query can't be read: {failure}") from failure


async def whole_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes:
    """Return the body of a request. Raises BodyTooLarge as soon as that is known; Problem if it does not end."""
    said = header(scope, b"content-length")
    if said is not None and said.isdigit() and int(said) > max_bytes:
        raise BodyTooLarge(max_bytes)
    message = await receive()
    if not message.get("more_body"):
        body = message.get("body", b"")
    else:
        parts, size = [message.get("body", b"")], len(message.get("body", b""))
        while message.get("more_body"):
            if size > max_bytes:
                raise BodyTooLarge(max_bytes)
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise Problem(400, "Incomplete request", "The connection ended before the body did.")
    if len(body) > max_bytes:
        raise BodyTooLarge(max_bytes, is_whole=True)
    return bytes(body)


async def say(send: Send, headers: Headers, said: object) -> None:
    """Answer with something, as JSON."""
    await answer(send, 200, [JSON, (b"cache-control", b"no-store"), *headers], json.dumps(said).encode())
