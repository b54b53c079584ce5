"""The OpenAPI document (3.1) of the API, made of what the operations declare."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from rlite_pubsub.gateway.http.operation import ACCESS_TOKEN, Operation, Request, Table, as_json, serves, table
from rlite_pubsub.gateway.http.parameter import Parameter
from rlite_pubsub.gateway.http.request import answer
from rlite_pubsub.gateway.http.schema import PROBLEM, TEXT
from rlite_pubsub.gateway.http.target import MAX_NAME_BYTES
from rlite_pubsub.version import __version__

_ABOUT = f"""\
Events, channels and topics of a store; Redis clients see them as channels and streams.

**Names in paths** are percent-encoded, `/` in them as `%2F`, and may contain any bytes (`%FF` is a name that is not \
UTF-8). They have at most {MAX_NAME_BYTES} bytes. A `/` that is not encoded is part of the name if that is \
unambiguous.

**Names in JSON** are text; a byte that is not UTF-8 becomes `\\xNN`.

**Parameters** of a query that a path does not list are refused with 400, which names them and those that it knows. A \
GET also knows `access_token`.

**Lists** are sorted and come a page at a time; the `next` of a page is the `after` of the following one.

**Errors** are problem details (RFC 9457). Besides those that each operation lists, 405 answers a method that a path \
does not have, and 404 a path that does not exist. HEAD works wherever GET does.

**Keys** of JSON objects are in snake_case."""
_OF_ALL = (400, 503)
_OF_GUARDED = (401, 403)
_PATH_PARAMETERS = {
    "name": "A channel or topic.",
    "group": "A group of the topic.",
}
_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `http-tokens`, of a session (`/api/session`), or the password of the default user.",
    },
    "basic": {"type": "http", "scheme": "basic", "description": "A user of the server (ACL) and its password."},
    "query": {
        "type": "apiKey",
        "in": "query",
        "name": ACCESS_TOKEN,
        "description": "For EventSource, which cannot send headers.",
    },
}


class OpenApi:
    """The document of one server."""

    def __init__(self, resources: Iterable[object], is_guarded: Callable[[], bool]) -> None:
        self.operations = table((*resources, self))
        self._is_guarded = is_guarded
        self._texts: dict[bool, bytes] = {}

    @serves(
        "GET",
        "/openapi.json",
        "This document",
        tag="description",
        answers=as_json({"type": "object", "required": ["openapi"], "properties": {"openapi": TEXT}}),
    )
    async def _document(self, request: Request) -> None:
        is_guarded = self._is_guarded()
        text = self._texts.get(is_guarded)
        if text is None:
            text = self._texts[is_guarded] = json.dumps(document(self.operations, is_guarded)).encode()
        await answer(request.send, 200, [(b"content-type", b"application/json"), *request.headers], text)


def document(operations: Table, is_guarded: bool) -> dict[str, Any]:
    """Return all of it. Where the server is not guarded, nobody has to say who it is."""
    paths: dict[str, dict[str, Any]] = {}
    for path, methods in operations.items():
        paths[path] = {
            method.lower(): _described(served.operation, is_guarded) for method, served in methods.items()
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "rlite-pubsub", "version": __version__, "description": _ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": {"Problem": PROBLEM}, "securitySchemes": _SCHEMES},
    }


def _described(operation: Operation, is_guarded: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": _name(operation),
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": [
            *(_in_path(name, about) for name, about in _PATH_PARAMETERS.items() if f"{{{name}}}" in operation.path),
            *map(_in_query, operation.parameters),
            *(_in_header(name, about) for name, about in operation.headers.items()),
        ],
        "responses": _responses(operation),
        "security": [] if operation.is_open else _security(operation, is_guarded),
    }
    if operation.about:
        found["description"] = operation.about
    if operation.body:
        found["requestBody"] = {"content": _content(operation.body), "required": operation.needs_body}
    return found


def _name(operation: Operation) -> str:
    owner, _, verb = operation.handler.__qualname__.rpartition(".")
    return f"{owner.removesuffix('Resource')}_{verb.removeprefix('_')}".lower()


def _security(operation: Operation, is_guarded: bool) -> list[dict[str, list[str]]]:
    names = ["bearer", "basic", "query"] if operation.method == "GET" else ["bearer", "basic"]
    ways: list[dict[str, list[str]]] = [{name: []} for name in names]
    return ways if is_guarded else [{}, *ways]


def _in_path(name: str, about: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _in_query(parameter: Parameter[Any]) -> dict[str, Any]:
    found = {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": parameter.schema,
    }
    return {**found, "style": "form", "explode": True} if parameter.is_repeated else found


def _in_header(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": about, "schema": TEXT}


def _responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"200": {"description": "OK.", "content": _content(operation.answers)}}
    statuses = {*_OF_ALL, *operation.refusals, *(() if operation.is_open else _OF_GUARDED)}
    for status in sorted(statuses):
        content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            content.update(_content(operation.failing))
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    return found


def _content(contents: Any) -> dict[str, Any]:
    return {type: {"schema": schema} for type, schema in contents.items()}
