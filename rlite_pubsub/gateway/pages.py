"""The page and its files.

Promise: the page is the same for everybody and has no data in it, so that it may be shown to users who have yet to
give a
token; it loads nothing from elsewhere, runs no script but its own files, and is in nobody's frame. A browser asks each
time whether a file has changed, and is sent what has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from rlite_pubsub.gateway.http.operation import Request
from rlite_pubsub.gateway.http.request import Headers, Problem, answer, header

PAGE, PAGE_FILES = "/", "/page/"
INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SECURITY: Headers = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class PageFile(NamedTuple):
    """A file of the page, as it is sent."""

    content: bytes
    type: str
    etag: str


class Pages:
    """What browsers ask for beside the API."""

    def __init__(self) -> None:
        self._files = _files()

    async def show(self, request: Request) -> None:
        """Show a page. Raises Problem."""
        path, method = request.target.path, request.scope["method"]
        name = INDEX if path == PAGE else path.removeprefix(PAGE_FILES)
        detail = f"There is no {method} {request.scope['path']} here."
        if path != PAGE and not path.startswith(PAGE_FILES):
            raise Problem(404, "Not found", detail)
        if method not in ("GET", "HEAD"):
            raise Problem(405, "Method not allowed", detail, [(b"allow", b"GET, HEAD")])
        file = self._files.get(name)
        if file is None:
            raise Problem(404, "Not found", detail)
        etag = file.etag.encode()
        headers = [(b"content-type", file.type.encode()), (b"cache-control", b"no-cache"), (b"etag", etag), *_SECURITY]
        known = (header(request.scope, b"if-none-match") or b"").split(b",")
        if etag in [tag.strip().removeprefix(b"W/") for tag in known]:
            await request.send({"type": "http.response.start", "status": 304, "headers": [*headers, *request.headers]})
            await request.send({"type": "http.response.body", "body": b""})
        else:
            await answer(request.send, 200, [*headers, *request.headers], file.content)


def _files() -> dict[str, PageFile]:
    return dict(_in_folder(resources.files("rlite_pubsub.gateway") / "page", ""))


def _in_folder(folder: Traversable, prefix: str) -> Iterator[tuple[str, PageFile]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _in_folder(each, f"{prefix}{each.name}/")
            continue
        type = _TYPES.get(each.name.rpartition(".")[2])
        if type is not None:
            content = each.read_bytes()
            yield prefix + each.name, PageFile(content, type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
