"""A command as redis-py has it, made a request as the command table wants it."""

from __future__ import annotations

from typing import Any, Protocol


class Encoder(Protocol):
    """redis-py's."""

    def encode(self, value: Any) -> Any: ...


def request_of(encoder: Encoder, args: tuple[Any, ...]) -> list[bytes]:
    """The arguments as bytes. As in redis-py, blanks in the first one divide it ("CONFIG GET"). Raises DataError."""
    first = args[0]
    request: list[bytes] = first.encode().split() if isinstance(first, str) else first.split()
    for arg in args[1:]:
        if arg.__class__ is not bytes:
            arg = encoder.encode(arg)
            if arg.__class__ is not bytes:
                arg = bytes(arg)
        request.append(arg)
    return request
