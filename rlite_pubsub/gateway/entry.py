"""An entry of any topic as JSON: an object of its fields, and its id as Redis says it.

A value that is no UTF-8 is `{"base64": "…"}`, both ways; on request every value is. What is posted may be such an
object, or any bytes at all, which become the field `message`: as what is published to a retained channel does.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64encode
from typing import NoReturn

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http.operation import Contents
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import BASE64, TEXT, Schema
from rlite_pubsub.keyspace.topic.retained import FIELD
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

JSON_TYPES = ("application/json",)
IS_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}", re.ASCII)
SCHEMA: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [
            {"type": ["string", "number", "boolean", "null", "array"]},
            {"type": "object", "not": {"required": ["base64"], "maxProperties": 1}},
            {"type": "object", "required": ["base64"], "properties": {"base64": BASE64}, "maxProperties": 1},
        ]
    },
    "description": 'The fields. A value that is not a string is stored as JSON; `{"base64": "…"}` stands for bytes.',
}
"""Of an entry that is posted."""
BODIES: Contents = {"application/octet-stream": TEXT, "text/plain": TEXT}
"""Any bytes."""
ENCODED = "With `encoding=base64` in the query the body is base64."
"""Not declared as a parameter: no schema can say that it narrows the body."""


def decode(entry: bytes) -> tuple[bytes, bytes]:
    """(no type, the fields) of an entry, for a stream."""
    return b"", json.dumps(fields(entry), ensure_ascii=False).encode()


def decode_binary(entry: bytes) -> tuple[bytes, bytes]:
    """Like `decode`, every value in base64."""
    return b"", json.dumps(fields(entry, is_binary=True)).encode()


def fields(entry: bytes, *, is_binary: bool = False) -> dict[str, object]:
    """Return an entry's fields. Of those that repeat the last one counts."""
    value_of = _base64 if is_binary else event.value_of
    return {event.text_of(field): value_of(value) for field, value in event.fields_of(entry)}


def name(entry_id: Id) -> bytes:
    """Return the name of the id."""
    return entry_ids.text(entry_id)


def words(content_type: str, body: bytes, *, is_base64: bool = False) -> tuple[bytes, ...]:
    """Return the fields and values of what is posted. Raises Problem."""
    if content_type in JSON_TYPES:
        return _of_object(loaded(body, "The body"), "The body")
    if is_base64:
        body = decoded(body, "The body")
    return FIELD, body


def batch(content_type: str, body: bytes) -> list[tuple[bytes, ...]]:
    """Return the entries of NDJSON, an object in each line, or of an array of JSON. Raises Problem."""
    if content_type in JSON_TYPES:
        return _of_array(loaded(body, "The body"))
    found = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            what = f"Line {number}"
            found.append(_of_object(loaded(line, what), what))
    if not found:
        raise Problem(400, "Nothing posted", "A batch has one JSON object in each line.")
    return found


def _of_array(said: object) -> list[tuple[bytes, ...]]:
    if not isinstance(said, list) or not said:
        raise Problem(400, "Nothing posted", "A batch is a JSON array with at least one object.")
    return [_of_object(each, f"Entry {number}") for number, each in enumerate(said, 1)]


def loaded(text: bytes, what: str) -> object:
    """JSON. Raises Problem."""
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError) as failure:
        raise Problem(400, "Bad JSON", f"{what} is not valid JSON: {failure}") from failure


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


def _of_object(said: object, what: str) -> tuple[bytes, ...]:
    if not isinstance(said, dict) or not said:
        raise Problem(400, "No fields", f"{what} is not a JSON object with at least one field.")
    found: list[bytes] = []
    for field, value in said.items():
        found += _encoded(field, what), _value(value, f"{what}: the field {json.dumps(field)[:80]}")
    return tuple(found)


def _value(value: object, what: str) -> bytes:
    if isinstance(value, str):
        return _encoded(value, what)
    if isinstance(value, dict) and value.keys() == {"base64"}:
        text = value["base64"]
        if not isinstance(text, str):
            raise Problem(400, "Bad base64", f"{what}: base64 is a string.")
        return decoded(_encoded(text, what), what)
    if isinstance(value, int | float) or value is None:
        return json.dumps(value).encode()
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as failure:
        raise Problem(400, "Bad text", f"{what} has half of a surrogate pair.") from failure


def decoded(text: bytes, what: str) -> bytes:
    """Return the decoded base64. Raises Problem."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as failure:
        raise Problem(400, "Bad base64", f"{what} is not valid base64: {failure}") from failure


def _base64(value: bytes) -> object:
    return {"base64": b64encode(value).decode()}
