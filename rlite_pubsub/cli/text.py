"""Bytes as they are shown.

Promise: what is shown is one line, cannot command the terminal, and says which bytes it stands for: a backslash, a
control character, a character that is not printable and a byte that is no UTF-8 are escaped, and nothing else is.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

_NAMED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SMUGGLED = range(0xDC80, 0xDD00)
"""What `surrogateescape` makes of a byte that is no UTF-8."""


def escaped(data: bytes) -> str:
    """Return the data in one line."""
    text = data.decode("utf-8", "surrogateescape")
    return text if text.isprintable() and "\\" not in text else "".join(map(escape_of, text))


def escape_of(character: str) -> str:
    """Return the character, or what stands for it."""
    if character in _NAMED:
        return _NAMED[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code in _SMUGGLED:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def for_json(data: bytes) -> object:
    """Return a text; `{"base64": "…"}` where it is none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def raw(value: object) -> bytes:
    """Return the bytes of a client's answer, whether it decodes or not."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")


def shown_bytes(value: float) -> str:
    """12.3 MB"""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def text(value: object) -> str:
    """One of our names."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def mapping(reply: Any) -> dict[str, Any]:
    """Return a map, as RESP2 and RESP3 have it."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {text(key): value for key, value in pairs}
