"""What only the owner of a session's connection knows: its descriptor, and the memory of its buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Traffic(NamedTuple):
    """Bytes since the connection began, as the kernel counts them."""

    received: int
    acknowledged: int
    """By the peer's kernel, of what was sent to it."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Sizes in bytes, unless said otherwise; the comments give the words of CLIENT LIST."""

    descriptor: int = -1  # fd
    unix: bool = False  # flag U
    awaited_events: bytes = b"r"  # events: r and w
    query: int = 0  # qbuf: received, not yet executed
    query_free: int = 0  # qbuf-free
    arguments: int = 0  # argv-mem, of requests that are held back
    reply_buffer: int = 0  # rbs
    reply_buffer_peak: int = 0  # rbp
    outbox: int = 0  # obl: in the fixed buffer
    outbox_parts: int = 0  # oll: how many more parts wait
    outbox_parts_memory: int = 0  # omem
    total: int = 0  # tot-mem
