"""The HTTP API in Markdown, from its OpenAPI document."""

from __future__ import annotations

import re
from typing import Any


def markdown(document: dict[str, Any]) -> str:
    """A section for each tag, and in it an entry for each operation: what it takes, and what it answers."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append(_entry(method.upper(), path, operation))
    parts = [document["info"]["description"]]
    for tag, entries in by_tag.items():
        parts += [f"## {tag.capitalize()}", *entries]
    return "\n\n".join(parts)


def _entry(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"### `{method} {path}`", f"{operation['summary'].rstrip('.')}."]
    if "description" in operation:
        parts.append(operation["description"])
    if operation["parameters"]:
        rows = "".join(map(_row, operation["parameters"]))
        parts.append(f"| parameter | in | type | what it is |\n|---|---|---|---|\n{rows}".rstrip("\n"))
    if "requestBody" in operation:
        need = "" if operation["requestBody"]["required"] else " (may be empty)"
        parts.append(f"Body{need}: {_kinds(operation['requestBody']['content'])}.")
    responses = operation["responses"]
    refusals = ", ".join(code for code in responses if code != "200")
    parts.append(f"Answers 200 with {_kinds(responses['200']['content'])}. Refusals: {refusals}.")
    return "\n\n".join(parts)


def _row(parameter: dict[str, Any]) -> str:
    name = f"`{parameter['name']}`" + (", required" if parameter["required"] and parameter["in"] != "path" else "")
    about = re.sub(r"\s+", " ", parameter["description"]).replace("|", "\\|")
    return f"| {name} | {parameter['in']} | {_type(parameter['schema'])} | {about} |\n"


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    if "items" in schema:
        return f"{_type(schema['items'])}, repeatable"
    kind = schema.get("type", "text")
    if isinstance(kind, list):
        kind = " or ".join(kind)
    default = f", default `{schema['default']}`" if "default" in schema else ""
    return f"{kind}{default}"


def _kinds(content: dict[str, Any]) -> str:
    """The media types, with the fields that JSON of each has."""
    return " or ".join(f"`{kind}`{_fields(about.get('schema', {}))}" for kind, about in content.items())


def _fields(schema: dict[str, Any]) -> str:
    if schema.get("type") == "array":
        inner = _fields(schema["items"])
        return f" (a list{inner and ' of objects' + inner})"
    names = ", ".join(f"`{name}`" for name in schema.get("properties", ()) if name != "event")
    return f" ({names})" if names else ""
