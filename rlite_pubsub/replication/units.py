"""Requests in the pieces in which they may be executed: one alone, or a transaction from MULTI to EXEC."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.protocol.appended import Source, Truncated, read_requests

Unit = tuple[list[list[bytes]], int]
"""Requests, and how many bytes they take."""


def read_units(source: Source) -> Iterator[Unit]:
    """Each as soon as it is whole. Raises Broken, and Truncated where it ends within one."""
    transaction: list[list[bytes]] | None = None
    size = 0
    for words, request_bytes in read_requests(source):
        size += request_bytes
        word = words[0].upper() if words else b""
        if transaction is not None:
            transaction.append(words)
            if word != b"EXEC":
                continue
            yield transaction, size
            transaction = None
        elif word == b"MULTI":
            transaction = [words]
            continue
        else:
            yield ([words] if words else []), size
        size = 0
    if transaction is not None:
        raise Truncated
