"""An event as an entry of the topic `events`: the fields `type` and `body`.

Every Redis client may append to that topic, and may append what is no event: such an entry is one all the same. Without
a `type` it has none; without a `body` its body is a JSON object of its fields; and a body that is no text is told as
`{"base64": "…"}`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.storage.topics.entry_ids import Id

DATABASE = 0
TOPIC = b"events"
_TYPE, _BODY = b"type", b"body"
_PARTS = 12
"""`*2`, length, id, `*4`, `$4`, `type`, length, the type, `$4`, `body`, length, and the body."""


def words(type: bytes, body: bytes) -> tuple[bytes, ...]:
    """Return the fields and values of an event."""
    return _TYPE, type, _BODY, body


def encode(entry_id: Id, type: bytes, body: bytes) -> bytes:
    """Encode an event as the topic has it."""
    return encode_entry(entry_id, words(type, body))


def decode(entry: bytes) -> tuple[bytes, bytes]:
    """(type, body) of an entry, as it is sent to a Redis client. The body is UTF-8."""
    parts = entry.split(b"\r\n", _PARTS - 1)
    if (
        len(parts) == _PARTS
        and parts[3] == b"*4"
        and parts[5] == _TYPE
        and parts[9] == _BODY
        and parts[4] == b"$4" == parts[8]
        and parts[6] == b"$%d" % len(parts[7])
    ):
        body = parts[11][:-2]
        return parts[7], body if body.isascii() else as_text(body)
    return _foreign(entry)


def _foreign(entry: bytes) -> tuple[bytes, bytes]:
    fields = dict(fields_of(entry))
    type = fields.pop(_TYPE, b"")
    body = fields.get(_BODY)
    if body is not None:
        return type, as_text(body)
    about = {text_of(field): value_of(value) for field, value in fields.items()}
    return type, json.dumps(about, ensure_ascii=False).encode()


def fields_of(entry: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return the fields and values of `*2 $… id *n $… field $… value …`."""
    at = entry.index(b"\r\n", entry.index(b"\r\n", 4) + 2) + 2
    end = entry.index(b"\r\n", at)
    found = []
    for _ in range(int(entry[at + 1 : end])):
        at = end + 2
        end = entry.index(b"\r\n", at)
        start = end + 2
        end = start + int(entry[at + 1 : end])
        found.append(entry[start:end])
    return zip(found[::2], found[1::2], strict=True)


def as_text(body: bytes) -> bytes:
    """Return a body as it is sent: UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return json.dumps(_base64(body)).encode()
    return body


def _base64(value: bytes) -> dict[str, str]:
    return {"base64": b64encode(value).decode()}


def text_of(field: bytes) -> str:
    """Return a name, as text."""
    return field.decode(errors="backslashreplace")


def value_of(value: bytes) -> object:
    """Text, or what stands for bytes that are none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _base64(value)
