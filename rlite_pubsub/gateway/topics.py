"""Topics over HTTP: their entries as JSON and as streams, posted one by one or in batches, and lists of them.

    GET  /api/topics?match=&after=&count=     what there is, a page at a time, by name
    GET  /api/topics/NAME?after=&count=       entries; with `Accept: text/event-stream` a stream that goes on
    POST /api/topics/NAME                     an entry
    POST /api/topics/NAME/batch               entries, as NDJSON, in one commit
    GET  /api/topics/NAME/info, …/groups      what is known of it, and its groups with their lags
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.gateway import entry, event, uuid6
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.event_log import EventLog, Form
from rlite_pubsub.gateway.http import Headers, Problem, Receive, Scope, Send, header, only, parameters, say, whole_body
from rlite_pubsub.gateway.posting import Posting, PostRefused, WrongType
from rlite_pubsub.gateway.streams import Streams
from rlite_pubsub.storage import entry_ids
from rlite_pubsub.storage.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.commands.instance import Instance
    from rlite_pubsub.delivery.keyspace import Keyspace

PREFIX = "/api/topics"
DEFAULT_COUNT = 100
MAX_COUNT = 1000
_DECODE = {"text": entry.decode, "base64": entry.decode_binary}
_POST, _GET = "POST", "GET"


class _Open(NamedTuple):
    """Streams of one topic in one form, and how they hear of it."""

    streams: Streams
    listener: Callable[[], None]


class Topics:
    """All topics of one server."""

    def __init__(self, instance: Instance, keyspace: Keyspace, posting: Posting, asking: Asking) -> None:
        self._instance = instance
        self._keyspace = keyspace
        self._posting = posting
        self._asking = asking
        self._open: dict[tuple[bytes, str], _Open] = {}

    def close(self) -> None:
        """Every stream ends."""
        for each in self._open.values():
            each.streams.close()

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """A request below `PREFIX`. Raises Problem and StoreError."""
        path = scope["path"].removeprefix(PREFIX)
        query = dict(parameters(scope["query_string"]))
        method = scope["method"]
        if path in ("", "/"):
            only(method, _GET)
            return await say(send, headers, await self._list(query))
        name, _, last = path[1:].rpartition("/")
        if name and last == "batch":
            only(method, _POST)
            body = await whole_body(scope, receive, self._instance.settings["http-max-body"])
            ids = await self._append(name, entry.batch(body))
            return await say(send, headers, {"ids": ids})
        if name and last in ("info", "groups"):
            only(method, _GET)
            question = [b"topic.info"] if last == "info" else [b"xinfo", b"groups"]
            return await say(send, headers, plain(await self._asking.ask(*question, name.encode())))
        name = path[1:]
        only(method, _GET, _POST)
        encoding = query.get("encoding", "text")
        if encoding not in _DECODE:
            raise Problem(400, "Bad encoding", "encoding is text or base64.")
        if method == _POST:
            body = await whole_body(scope, receive, self._instance.settings["http-max-body"])
            content_type = (header(scope, b"content-type") or b"").decode("latin-1").partition(";")[0].strip().lower()
            words = entry.words(content_type, body, is_base64=encoding == "base64")
            (entry_id,) = await self._append(name, [words])
            return await say(send, headers, {"id": entry_id})
        if b"text/event-stream" in (header(scope, b"accept") or b""):
            return await self._stream(name, encoding, query, scope, receive, send, headers)
        await say(send, headers, self._entries(name, encoding, query))

    # -- entries

    async def _append(self, name: str, entries: list[tuple[bytes, ...]]) -> list[str]:
        """All in one turn, and so in one commit."""
        posts = [self._posting.post(name.encode(), words) for words in entries]
        found = await asyncio.gather(*posts, return_exceptions=True)
        for each in found:
            if isinstance(each, PostRefused):
                status = 409 if isinstance(each, WrongType) else 507 if each.is_full else 503
                raise Problem(status, "Not stored", str(each)) from each
            if isinstance(each, BaseException):
                raise each
        return [entry_ids.text(each).decode() for each in found if not isinstance(each, BaseException)]

    def _entries(self, name: str, encoding: str, query: dict[str, str]) -> object:
        after = _place(query.get("after", "0-0"))
        count = _count(query)
        log = self._log(name, encoding)
        found = [
            {"id": entry_ids.text(entry_id).decode(), "fields": entry.fields(each, is_binary=encoding == "base64")}
            for entry_id, each in log.entries(after, count)
        ]
        return {"entries": found, "next": found[-1]["id"] if len(found) == count else None}

    def _log(self, name: str, encoding: str) -> EventLog:
        return EventLog(self._keyspace, Form(name.encode(), _DECODE[encoding], entry.name))

    async def _stream(
        self,
        name: str,
        encoding: str,
        query: dict[str, str],
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Headers,
    ) -> None:
        place = name.encode(), encoding
        key = event.DATABASE, place[0]
        there = self._open.get(place)
        if there is None:
            settings = self._instance.settings
            streams = Streams(
                self._log(name, encoding),
                lambda: float(settings["http-heartbeat"]),
                lambda: int(settings["http-retry"]),
            )
            there = self._open[place] = _Open(streams, streams.note)
            self._instance.followers.listen(key, there.listener)
        said = header(scope, b"last-event-id")
        asked = said.decode(errors="replace") if said else query.get("last_event_id") or None
        try:
            there.streams.expected += 1
            await there.streams.serve(there.streams.place(asked), None, headers, receive, send)
        finally:
            there.streams.expected -= 1
            if not there.streams.expected and self._open.get(place) is there:
                del self._open[place]
                self._instance.followers.unlisten(key, there.listener)

    # -- lists

    async def _list(self, query: dict[str, str]) -> object:
        match = query.get("match")
        words = [b"topic.list"] if match is None else [b"topic.list", b"MATCH", match.encode()]
        names = await self._asking.ask(*words)
        after, count = query.get("after", "").encode(), _count(query)
        page = names[bisect_right(names, after) :][:count] if after else names[:count]
        found = []
        for each in page:
            try:
                found.append(plain(await self._asking.ask(b"topic.info", each)))
            except Problem as problem:
                if problem.status != 404:  # it is gone meanwhile
                    raise
        return {"topics": found, "next": event.text_of(page[-1]) if len(page) == count else None}


def _place(word: str) -> Id:
    found = uuid6.parse(word)
    if found is None:
        raise Problem(400, "Bad id", "An id is `ms-seq`.")
    return found


def _count(query: dict[str, str]) -> int:
    word = query.get("count", str(DEFAULT_COUNT))
    if not (word.isascii() and word.isdigit() and 1 <= int(word[:9]) <= MAX_COUNT and len(word) < 9):
        raise Problem(400, "Bad count", f"count is a number from 1 to {MAX_COUNT}.")
    return int(word)
