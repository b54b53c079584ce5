"""JSON schemas of what goes in and out, in short."""

from __future__ import annotations

from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
SWITCH: Schema = {"type": "integer", "enum": [0, 1]}
"""As commands say it."""
NAME: Schema = {
    "type": "string",
    "description": "A byte that is not UTF-8 is written as `\\xNN`.",
}
ENTRY_ID: Schema = {"type": "string", "pattern": "^[0-9]{1,20}-[0-9]{1,20}$", "description": "`ms-seq`"}
BASE64: Schema = {
    "type": "string",
    "contentEncoding": "base64",
    "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
BYTES: Schema = {
    "anyOf": [TEXT, {"type": "object", "required": ["base64"], "properties": {"base64": BASE64}}],
    "description": "Text; bytes that are not UTF-8 as base64.",
}
SENT: Schema = {
    "type": "object",
    "properties": {"event": TEXT, "id": TEXT, "data": TEXT},
    "description": "One event of the stream.",
}
PROBLEM: Schema = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {"title": TEXT, "status": NUMBER, "detail": TEXT},
}


def maybe(schema: Schema) -> Schema:
    """Return the schema of this, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def array(of: Schema) -> Schema:
    """Any number of these."""
    return {"type": "array", "items": of}


def record(**fields: Schema) -> Schema:
    """Return an object that has at least these."""
    return {"type": "object", "required": list(fields), "properties": fields}


def page(name: str, of: Schema, /, **more: Schema) -> Schema:
    """Return a page of a list, and where the next one begins; null if it is the last."""
    return record(**{name: array(of)}, **more, next=maybe(TEXT))
