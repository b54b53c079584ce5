"""`rlite-pubsub events`: the event bus over HTTP. `post` stores an event, `tail` shows them.

Promises of `tail`:
 - Each event is shown once and in order: it comes back by itself with the id of the last one that was shown, after as
   long as the server asks for.
 - Law 8: what is not there any more is said on standard error.
`post` tries once: whether an event whose answer is lost was stored is not known, and that is an error.

A token comes from a file or from the environment: an argument can be seen by everybody on the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import ssl
import sys
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.cli.following.output import Output, add_output
from rlite_pubsub.cli.text import escaped

PATH = "/api/events"
DEFAULT_RETRY_MS = 2000
LONGEST_DELAY_S = 10.0
GAP = "gap"
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_READ_BYTES = 1 << 16
_SERVER_ERRORS = 500
DEFAULT_TYPE = "message"
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
"""A CR at the end of what is there may be half of a line's end."""
DEFAULT_URL = "http://127.0.0.1:8080"
TOKEN = "RLITE_TOKEN"
SILENCE_S = 60.0
"""A connection that says nothing for so long is taken for dead; a stream has heartbeats every 15 s."""
_PORTS = {"http": 80, "https": 443}


def events(parser: argparse.ArgumentParser) -> None:
    """Declares its commands."""
    words = parser.add_subparsers(required=True, metavar="post|tail")
    summary = "Store an event, and print its id."
    post = words.add_parser("post", help=summary, description=summary)
    post.add_argument("type")
    post.add_argument("data", nargs="?", default="-", help="its body; @FILE for a file's, - (the default) for stdin's")
    add_http(post)
    post.set_defaults(run=_post)
    summary = "Show all events, and then those that come, until interrupted."
    tail = words.add_parser("tail", help=summary, description=summary)
    tail.add_argument(
        "--type-matcher", action="append", default=[], metavar="REGEX", help="only types that match; may be repeated"
    )
    tail.add_argument(
        "--last-event-id", metavar="ID", help="only events after this one; `latest` for new ones only"
    )
    add_http(tail)
    add_output(tail)
    tail.set_defaults(run=_tail)


def _post(arguments: argparse.Namespace) -> int:
    place = HttpPlace(arguments)
    body = _body(arguments.data)
    try:
        answer = place.ask("POST", PATH, [("type", arguments.type)], _TEXT, body)
        print(json.loads(answer.read())["id"])
    except (http.client.HTTPException, ValueError, KeyError) as failure:
        raise CommandFailed(f"{place.url}: the answer can't be understood: {failure!r}") from failure
    return 0


def _body(word: str) -> bytes:
    if word == "-":
        return sys.stdin.buffer.read()
    return Path(word[1:]).read_bytes() if word.startswith("@") else word.encode(errors="surrogateescape")


def _tail(arguments: argparse.Namespace) -> int:
    following = _Following(HttpPlace(arguments), arguments.type_matcher, arguments.last_event_id, Output(arguments))
    is_wanted, failures = True, 0
    while is_wanted:
        try:
            is_wanted, failures = following.follow(), 0
            reason = "the stream has ended"
        except (http.client.HTTPException, OSError, HttpRefused) as failure:
            if isinstance(failure, BrokenPipeError) and following.is_writing:
                raise
            if not following.has_begun or (isinstance(failure, HttpRefused) and failure.status < _SERVER_ERRORS):
                raise CommandFailed(f"{following.url}: {failure}") from failure
            reason = str(failure) or repr(failure)
        if is_wanted:
            failures = 0 if following.was_connected else failures + 1
            if failures == 0:
                say(f"{reason}: coming back")
            time.sleep(following.delay_s(failures))
            following.check_output()
    return 0


class _Following:
    """One after the other: the streams of one `tail`."""

    def __init__(self, place: HttpPlace, matchers: list[str], last_id: str | None, output: Output) -> None:
        self._place = place
        self._query = [("typeMatcher", matcher) for matcher in matchers]
        self._last_id = last_id
        self._output = output
        self._retry_ms = DEFAULT_RETRY_MS
        self.has_begun = False
        self.was_connected = False
        self.is_writing = False

    @property
    def url(self) -> str:
        return self._place.url

    def follow(self) -> bool:
        """Follow to the end of a stream, however it ends; return whether more is wanted."""
        self.was_connected = False
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self._last_id} if self._last_id else {})
        response = self._place.ask("GET", PATH, self._query, headers)
        self.was_connected = self.has_begun = True
        stream = EventStream(self._last_id, self._retry_ms)
        with response:
            while data := response.read1(_READ_BYTES):
                events = stream.feed(data)
                self._retry_ms = stream.retry_ms
                self.is_writing = True
                if not all(map(self._take, events)):
                    return False
                self.check_output()
                self.is_writing = False
                self._last_id = stream.last_id
        return True

    def delay_s(self, failures: int) -> float:
        """Return how long to wait: as long as the server has asked for; longer, the longer it is away."""
        retry_s = self._retry_ms / 1000
        return max(retry_s, min(retry_s * (1 << min(failures, 16)), LONGEST_DELAY_S))

    def check_output(self) -> None:
        """Check that somebody reads the output. Raises BrokenPipeError."""
        self._output.check()

    def _take(self, event: Event) -> bool:
        if event.type == GAP and event.id is None:
            say(f"gap: {event.data}")
            return True
        return self._output.put(_Shown(event))


class _Shown:
    """`ID TYPE body`"""

    def __init__(self, event: Event) -> None:
        self._event = event

    def line(self) -> str:
        event = self._event
        return f"{event.id or '-'} {escaped(event.type.encode())} {escaped(event.data.encode())}"

    def raw(self) -> bytes:
        return self._event.data.encode()

    def about(self) -> dict[str, object]:
        return {"id": self._event.id, "type": self._event.type, "data": self._event.data}


# -- a server's HTTP


class HttpRefused(CommandFailed):
    """The server has answered, and does not do it."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"the server answers {status}: {what}")
        self.status = status


def add_http(parser: argparse.ArgumentParser) -> None:
    """The options of an `HttpPlace`."""
    parser.add_argument("--url", default=DEFAULT_URL, help=f"the server's HTTP address (default: {DEFAULT_URL})")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help=f"file with a bearer token (default: the variable {TOKEN})"
    )
    parser.add_argument(
        "--cacert", metavar="FILE", help="certificates to trust for https, PEM (default: what this machine trusts)"
    )


class HttpPlace:
    """A server by its URL. Raises CommandFailed and OSError."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.url: str = arguments.url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
            raise CommandFailed(f"{self.url} is not a URL like {DEFAULT_URL}")
        if parts.username is not None or parts.password is not None:
            raise CommandFailed(f"others can see a URL: put the token into a --token-file or {TOKEN}")
        try:
            self._port = parts.port or _PORTS[parts.scheme]
        except ValueError as failure:
            raise CommandFailed(f"{self.url}: {failure}") from failure
        self._context = _context(arguments.cacert) if parts.scheme == "https" else None
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
        """Return an answer, which is 200. Raises Refused, OSError and HTTPException."""
        connection = self._connection()
        if self._token is not None:
            headers = headers | {"Authorization": f"Bearer {self._token}"}
        target = self._path + path + ("?" + urlencode(query) if query else "")
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise HttpRefused(response.status, _problem(response))
        except BaseException:
            connection.close()
            raise
        return response


    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=SILENCE_S)
        return http.client.HTTPSConnection(self._host, self._port, timeout=SILENCE_S, context=self._context)


def _context(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as failure:
        raise CommandFailed(f"{authorities}: {failure}") from failure


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


# -- Server-Sent Events: bytes in, events out. No I/O.
#
# Promise: an event counts once all of it is there, its empty line included; until then neither it nor its id is known.
# So a reader that comes back with `last_id` after any cut gets each event once.


class Event(NamedTuple):
    """One of a stream."""

    type: str
    id: str | None
    """None where it has none of its own."""
    data: str


class EventStream:
    """One connection's. `last_id` and `retry_ms` are for the next one."""

    def __init__(self, last_id: str | None, retry_ms: int) -> None:
        self.last_id = last_id
        self.retry_ms = retry_ms
        self._rest = b""
        self._type = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete with it."""
        *lines, self._rest = _LINE_END.split(self._rest + data)
        found = []
        for line in lines:
            if line:
                self._take(line.decode(errors="replace"))
            else:
                event = self._dispatched()
                if event is not None:
                    found.append(event)
        return found

    def _take(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._type = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatched(self) -> Event | None:
        type, id, data = self._type, self._id, self._data
        self._type, self._id, self._data = "", None, []
        if id is not None:
            self.last_id = id
        return Event(type or DEFAULT_TYPE, id, "\n".join(data)) if data else None
