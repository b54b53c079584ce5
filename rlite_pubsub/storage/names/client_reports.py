"""The processes of a store tell each other about their clients, while somebody asks.

    key    \\0 "clients"                                value  asked for until ms u64 | with each client until ms u64
    key    'h' | subscriber u64 | part u16              value  a piece of its report (engine/stats/reporting.py)
    key    'x' | subscriber u64 | session u64           value  empty: it is to close this connection

A writer of one of the first or the last kind increases a number in shared memory after its commit (version.py), so that
a process looks here only when there is something to see.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

PART_BYTES = 64 << 10
_UNTIL = Struct(">QQ")
_PART = Struct(">cQH")
_KILL = Struct(">cQQ")
_OWNER = Struct(">cQ")


class Asked(NamedTuple):
    """How long every process reports how many clients it has, and everything about them."""

    until_ms: int = 0
    details_until_ms: int = 0


def ask(txn: Txn, asked: Asked) -> None:
    """Ask every process to report, replacing what was asked before."""
    txn.put(databases.CLIENTS_ASKED, _UNTIL.pack(*asked))


def asked(txn: Txn) -> Asked:
    """Return what is asked for."""
    found = txn.get(databases.CLIENTS_ASKED)
    return Asked() if found is None else Asked(*_UNTIL.unpack(found))


def put(txn: Txn, subscriber: int, report: bytes) -> None:
    """Write a subscriber's report, replacing the one before."""
    drop(txn, subscriber)
    for number, start in enumerate(range(0, len(report), PART_BYTES)):
        txn.put(_PART.pack(databases.CLIENT_REPORTS, subscriber, number), report[start : start + PART_BYTES])


def every(txn: Txn) -> dict[int, bytes]:
    """Return the report of each subscriber that has one."""
    found: dict[int, list[bytes]] = {}
    for key, value in databases.items(txn, databases.CLIENT_REPORTS):
        found.setdefault(_PART.unpack(key)[1], []).append(bytes(value))
    return {subscriber: b"".join(parts) for subscriber, parts in found.items()}


def ask_to_close(txn: Txn, subscriber: int, session: int) -> None:
    """Ask a process to close one of its connections."""
    txn.put(_KILL.pack(databases.CLIENT_KILLS, subscriber, session), b"")


def to_close(txn: Txn, subscriber: int) -> list[int]:
    """Return the sessions that this process is asked to close."""
    prefix = _OWNER.pack(databases.CLIENT_KILLS, subscriber)
    return [_KILL.unpack(key)[2] for key, _ in databases.items(txn, prefix)]


def closed(txn: Txn, subscriber: int, sessions: list[int]) -> None:
    """Note that it has closed these."""
    for session in sessions:
        txn.delete(_KILL.pack(databases.CLIENT_KILLS, subscriber, session))


def drop(txn: Txn, subscriber: int) -> int:
    """Remove its report; return how many records that were."""
    prefix = _OWNER.pack(databases.CLIENT_REPORTS, subscriber)
    keys = [key for key, _ in databases.items(txn, prefix)]
    for key in keys:
        txn.delete(key)
    return len(keys)


def drop_subscriber(txn: Txn, subscriber: int) -> int:
    """Remove everything about it; return how many records that were."""
    sessions = to_close(txn, subscriber)
    closed(txn, subscriber, sessions)
    return drop(txn, subscriber) + len(sessions)
