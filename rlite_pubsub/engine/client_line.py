"""One line about a session, `field=value` in redis-server 7.0.15's order: what CLIENT LIST and the ACL log show.

A session that told its library (CLIENT SETINFO) has that after the rest, as in later versions; all others look as they
always did.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlite_pubsub.engine.client import Transaction
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS

_POINTER_BYTES = 8
"""Redis counts the pointer to each queued argument, too."""


def client_line(session: CommandSession, request: Sequence[bytes] = ()) -> bytes:
    """Return the line that describes a session. `request` is the request it is executing, if it asks about itself."""
    now = int(session.engine.clock())
    footprint = session.footprint()
    if request and session.deny_blocking:  # inside EXEC, and that is the request under way
        request = (b"exec",)
    transaction, tracking, command = session.transaction, session.tracking, session.last_command
    fields: list[tuple[str, object]] = [
        ("id", session.id),
        ("addr", session.address),
        ("laddr", session.local_address),
        ("fd", footprint.descriptor),
        ("name", session.name),
        ("age", max(0, now - int(session.connected_at))),
        ("idle", max(0, now - int(session.last_active))),
        ("flags", _flags(session)),
        ("db", session.db),
        ("sub", len(session.names[CHANNELS.index])),
        ("psub", len(session.names[PATTERNS.index])),
        ("ssub", len(session.names[SHARDS.index])),
        ("multi", -1 if transaction is None else len(transaction.queue)),
        ("qbuf", footprint.query),
        ("qbuf-free", footprint.query_free),
        ("argv-mem", sum(map(len, request)) or footprint.arguments),
        ("multi-mem", 0 if transaction is None else _queued_bytes(transaction)),
        ("rbs", footprint.reply_buffer),
        ("rbp", footprint.reply_buffer_peak),
        ("obl", footprint.outbox),
        ("oll", footprint.outbox_parts),
        ("omem", footprint.outbox_parts_memory),
        ("tot-mem", footprint.total),
        ("events", footprint.awaited_events),
        ("cmd", b"NULL" if command is None else command.name),
        ("user", session.user),
        ("redir", -1 if tracking is None else tracking.redirect),
        ("resp", session.protocol),
    ]
    if session.lib_name or session.lib_version:
        fields += [("lib-name", session.lib_name), ("lib-ver", session.lib_version)]
    return b" ".join([b"%b=%b" % (name.encode(), _text(value)) for name, value in fields])


def _text(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _queued_bytes(transaction: Transaction) -> int:
    return sum(len(arg) + _POINTER_BYTES for _, args in transaction.queue for arg in args)


def _flags(session: CommandSession) -> bytes:
    transaction, tracking = session.transaction, session.tracking
    letters = {
        b"O": session in session.engine.monitors,
        b"S": session.is_replica,
        b"M": session.obeys_master,
        b"P": session.holds_names,
        b"x": transaction is not None,
        b"b": session.blocked is not None,
        b"t": tracking is not None,
        b"R": tracking is not None and tracking.broken_redirect,
        b"B": tracking is not None and tracking.broadcast,
        b"d": session.cas_broken,
        b"c": session.closing,
        b"U": session.footprint().unix,
        b"e": session.no_evict,
        b"T": session.no_touch,
    }
    return b"".join([letter for letter, holds in letters.items() if holds]) or b"N"
