"""Replies as redis-cli shows them, byte for byte: for a terminal, raw, as CSV, as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from rlite_pubsub.cli.terminal import harmless
from rlite_pubsub.engine.stats.monitor import quoted
from rlite_pubsub.protocol.decoder import BigNumber
from rlite_pubsub.protocol.encoder import double
from rlite_pubsub.protocol.replies import Error, Map, Push, Reply, SetReply, Status, Verbatim

_RAW_COMMANDS = {(b"info",), (b"lolwut",)}
_RAW_SUBCOMMANDS = {
    (b"client", b"list"),
    (b"client", b"info"),
    (b"cluster", b"info"),
    (b"cluster", b"nodes"),
    (b"debug", b"htstats"),
    (b"debug", b"htstats-key"),
    (b"latency", b"doctor"),
    (b"latency", b"graph"),
    (b"memory", b"doctor"),
    (b"memory", b"malloc-stats"),
}
"""What these answer is text for people: it is printed as it is, as redis-cli does."""
_EMPTY = {Map: b"(empty hash)", SetReply: b"(empty set)", Push: b"(empty push)"}
_SEPARATORS = {Map: b"#", SetReply: b"~"}


def for_terminal(reply: Reply, prefix: bytes = b"") -> bytes:
    """Quoted, numbered and indented, with a newline at its end."""
    if isinstance(reply, list):
        return _aggregate(reply, prefix)
    return _scalar(reply) + b"\n"


def _scalar(reply: Reply) -> bytes:
    if isinstance(reply, Error):
        return b"(error) %b" % harmless(reply.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if isinstance(reply, (Status, Verbatim, BigNumber)):
        return bytes(reply)
    if isinstance(reply, bytes):
        return quoted(reply)
    if reply is None:
        return b"(nil)"
    if isinstance(reply, bool):
        return b"(true)" if reply else b"(false)"
    return b"(double) %b" % double(reply) if isinstance(reply, float) else b"(integer) %d" % reply


def _aggregate(reply: list[Reply], prefix: bytes) -> bytes:
    kind = type(reply)
    if not reply:
        return _EMPTY.get(kind, b"(empty array)") + b"\n"
    width = len(str(len(reply)))
    inner = prefix + b" " * (width + 2)
    separator = _SEPARATORS.get(kind, b")")
    out = []
    for number, element in enumerate(reply, 1):
        head = b"%b%*d%b " % (b"" if number == 1 else prefix, width, number, separator)
        if kind is Map:
            key, value = element
            line_end = b"\n" + inner if _takes_lines(value) else b""
            out.append(head + for_terminal(key, inner)[:-1] + b" => " + line_end + for_terminal(value, inner))
        else:
            out.append(head + for_terminal(element, inner))
    return b"".join(out)


def _takes_lines(reply: Reply) -> bool:
    """More than one."""
    if not isinstance(reply, list) or len(reply) != 1:
        return isinstance(reply, list) and len(reply) > 1
    return _takes_lines(reply[0][1] if isinstance(reply, Map) else reply[0])


def raw(reply: Reply, delimiter: bytes = b"\n") -> bytes:
    """Return the reply and nothing else, its elements separated."""
    if isinstance(reply, Map):
        return delimiter.join([raw(key, delimiter) + b" " + raw(value, delimiter) for key, value in reply])
    if isinstance(reply, list):
        return delimiter.join([raw(element, delimiter) for element in reply])
    if isinstance(reply, Error):
        return reply + b"\n"
    if reply is None:
        return b""
    if isinstance(reply, bool):
        return _scalar(reply)
    return bytes(reply) if isinstance(reply, bytes) else _number(reply)


def csv(reply: Reply) -> bytes:
    """One line, with commas."""
    if isinstance(reply, Map):
        return b",".join([csv(key) + b"," + csv(value) for key, value in reply])
    if isinstance(reply, list):
        return b",".join(map(csv, reply))
    if isinstance(reply, Error):
        return b"ERROR," + quoted(reply)
    if isinstance(reply, BigNumber):
        return bytes(reply)
    if isinstance(reply, bytes):
        return quoted(reply)
    if reply is None:
        return b"NULL"
    if isinstance(reply, bool):
        return b"true" if reply else b"false"
    return _number(reply)


def as_json(reply: Reply, text: Callable[[bytes], bytes]) -> bytes:
    """One JSON value, whose strings `text` makes."""
    if isinstance(reply, Map):
        pairs = [(key if isinstance(key, bytes) else raw(key), value) for key, value in reply]
        return b"{" + b",".join([text(key) + b":" + as_json(value, text) for key, value in pairs]) + b"}"
    if isinstance(reply, list):
        return b"[" + b",".join([as_json(element, text) for element in reply]) + b"]"
    if isinstance(reply, BigNumber):
        return bytes(reply)
    if isinstance(reply, Error):
        return b"error:" + text(reply)
    if isinstance(reply, bytes):
        return text(reply)
    if reply is None:
        return b"null"
    if isinstance(reply, bool):
        return b"true" if reply else b"false"
    return _number(reply)


def _text(data: bytes) -> bytes:
    """A byte that is not UTF-8 is written as it is, as redis-cli does."""
    return json.dumps(data.decode(errors="surrogateescape"), ensure_ascii=False).encode(errors="surrogateescape")


def _quoted_text(data: bytes) -> bytes:
    """Return in ASCII what a terminal is shown, with its backslashes doubled."""
    return quoted(data).replace(b"\\", b"\\\\")


def _number(reply: int | float) -> bytes:
    return double(reply) if isinstance(reply, float) else b"%d" % reply


class Printer:
    """Replies in one form, to standard output."""

    def __init__(self, form: str | None, delimiter: bytes, end: bytes) -> None:
        if form is None:
            form = "terminal" if sys.stdout.isatty() or "FAKETTY" in os.environ else "raw"
        self.form = form
        self.is_for_terminal = form == "terminal"
        self.is_raw = form == "raw"
        self._made: Callable[[Reply], bytes] = {
            "terminal": for_terminal,
            "raw": lambda reply: raw(reply, delimiter) + end,
            "csv": lambda reply: csv(reply) + b"\n",
            "json": lambda reply: as_json(reply, _text) + b"\n",
            "quoted-json": lambda reply: as_json(reply, _quoted_text) + b"\n",
        }[form]

    def text(self, request: list[bytes], reply: Reply) -> bytes:
        """Return a reply to `request`, as it is printed."""
        words = tuple(word.lower() for word in request[:2])
        is_raw = words[:1] in _RAW_COMMANDS or words in _RAW_SUBCOMMANDS
        return raw(reply) if is_raw and not isinstance(reply, Error) else self._made(reply)

    def put(self, reply: Reply, request: list[bytes] | None = None) -> None:
        """Write it out before returning."""
        sys.stdout.buffer.write(self.text(request or [], reply))
        sys.stdout.buffer.flush()
