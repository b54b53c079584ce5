"""A command as redis-py has it, made a request as the command table wants it."""

from __future__ import annotations

from typing import Any, Protocol

from redis._parsers import Encoder as PlainEncoder


class Encoder(Protocol):
    """redis-py's, or one that a program has in its place."""

    encoding: str
    encoding_errors: str

    def encode(self, value: Any) -> Any: ...


def request_of(encoder: Encoder, args: tuple[Any, ...]) -> list[bytes]:
    """The arguments as bytes. As in redis-py, blanks in the first one divide it ("CONFIG GET"). Raises DataError."""
    first = args[0]
    request: list[bytes] = first.encode().split() if isinstance(first, str) else first.split()
    is_plain = encoder.__class__ is PlainEncoder
    for arg in args[1:]:
        if is_plain and arg.__class__ is str:
            arg = arg.encode(encoder.encoding, encoder.encoding_errors)
        elif arg.__class__ is not bytes:
            arg = encoder.encode(arg)
            if arg.__class__ is not bytes:
                arg = bytes(arg)
        request.append(arg)
    return request
