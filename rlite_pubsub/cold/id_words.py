"""Ids as text, in footers, manifests and on the command line."""

from __future__ import annotations

from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id


def id_text(entry_id: Id) -> str:
    return entry_ids.text(entry_id).decode()


def id_of(text: str) -> Id:
    """Read an id. Raises ValueError."""
    ms, _, seq = text.partition("-")
    if not (ms + seq).isascii() or not ms.isdigit() or not seq.isdigit():
        raise ValueError(f"{text!r} is not an id")
    found = int(ms), int(seq)
    if max(found) > entry_ids.PART_MAX:
        raise ValueError(f"{text!r} is not an id")
    return found
