"""Requests in the pieces in which they may be executed: one alone, or a transaction from MULTI to EXEC."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.protocol.appended import MOST_COST, TOO_LARGE, Broken, Source, Truncated, cost_of, read_requests

Unit = tuple[list[list[bytes]], int]
"""Requests, and how many bytes they take."""


def read_units(source: Source, most_cost: int = MOST_COST) -> Iterator[Unit]:
    """Each as soon as it is whole. Raises Broken, also for a transaction that no memory holds, and Truncated where it
    ends within one."""
    transaction: list[list[bytes]] | None = None
    size = cost = 0
    for words, request_bytes in read_requests(source, most_cost):
        size += request_bytes
        word = words[0].upper() if words else b""
        if transaction is not None:
            transaction.append(words)
            cost += cost_of(words, request_bytes)
            if cost > most_cost:
                raise Broken(TOO_LARGE)
            if word != b"EXEC":
                continue
            yield transaction, size
            transaction = None
        elif word == b"MULTI":
            transaction, cost = [words], 0
            continue
        else:
            yield ([words] if words else []), size
        size = 0
    if transaction is not None:
        raise Truncated
