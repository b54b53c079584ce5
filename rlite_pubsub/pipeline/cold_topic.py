"""TOPIC.BLOCKS: what a server reports of the part of a topic that is in the cold store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import redis

from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id


@dataclass(frozen=True)
class ColdTopic:
    """A topic's blocks, and what of them is gone."""

    url: str = field(repr=False)
    """Of the cold store: it may hold secrets."""
    store: str
    number: int
    sealed_to: Id
    """Entries above it are in the hot log, whatever a block holds."""
    floor: Id
    deleted: frozenset[Id]
    blocks: tuple[BlockInfo, ...]


NOWHERE = ColdTopic("", "", 0, entry_ids.MIN, entry_ids.MIN, frozenset(), ())


def cold_topic(client: Any, name: bytes) -> ColdTopic:
    """Return the cold part of a topic; an empty one if nothing was ever sealed, or there is no such topic."""
    try:
        told = _map(client.execute_command("TOPIC.BLOCKS", name))
    except redis.ResponseError as refusal:
        if str(refusal) == "no such key" or str(refusal).startswith("unknown command"):
            return NOWHERE
        raise
    return ColdTopic(
        told["cold"].decode(),
        told["store"].decode(),
        int(told["number"]),
        _id(told["sealed-to"]),
        _id(told["floor"]),
        frozenset(map(_id, told["deleted"])),
        tuple(_block(_map(each)) for each in told["blocks"]),
    )


def place_of(client: Any, cold: ColdTopic, cold_path: str | None) -> Place:
    """Return the place of its blocks: as the user says, as the server does, or the folder of the server's store. Raises
    OptionRefused."""
    if cold_path is not None:
        return open_place(cold_path, "/")
    if "://" in cold.url or cold.url.startswith("/"):
        return open_place(cold.url, "/")
    try:
        folder = client.config_get("dir")["dir"]
    except redis.ResponseError as refusal:
        raise OptionRefused(f"give cold-path: the server does not say where it is ({refusal})") from refusal
    return open_place(cold.url, folder.decode() if isinstance(folder, bytes) else str(folder))


def _block(told: dict[str, Any]) -> BlockInfo:
    return BlockInfo(
        told["path"].decode(),
        _id(told["first"]),
        _id(told["last"]),
        int(told["count"]),
        int(told["wire-bytes"]),
        int(told["file-bytes"]),
        bytes.fromhex(told["sha256"].decode()),
        int(told.get("sealed-ms", 0)),
        (),
    )


def _map(reply: Any) -> dict[str, Any]:
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {key.decode(): value for key, value in pairs}


def _id(text: bytes) -> Id:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq)
