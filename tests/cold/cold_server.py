"""A server whose topics are sealed, beside one that has no cold store: nobody can tell them apart.

Whoever seals here is started by the test, and killed where it wants, unless the server seals by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from patience import PATIENCE_S, until
from peer import Peer, Word, request
from server_process import ServerProcess

from rlite_pubsub.cold import checking
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES

GATE = Path(__file__).parent / "gate"
"""What a server needs in PYTHONPATH to have a cold store with a gate (gate/sitecustomize.py)."""
Words = tuple[Word, ...]
AT_ONCE = 500
"""Requests of a pipeline."""


class Sealer:
    """The sealing process of a store, started by hand."""

    def __init__(
        self,
        store_folder: Path,
        block_bytes: int,
        *,
        url: str = "",
        grace_s: int = 3600,
        failpoint: str | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        own = {"RLITE_FAILPOINT": failpoint} if failpoint is not None else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlite_pubsub.cold.sealer"],
            stdin=subprocess.PIPE,
            env=os.environ | own | (environment or {}),
        )
        words = {
            "dir": str(store_folder),
            "url": url,
            "block_bytes": block_bytes,
            "age_s": 0,
            "grace_s": grace_s,
            "durability": "everysec",
            "quota_bytes": UNLIMITED_QUOTA_BYTES,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def exit_code(self) -> int:
        """Of one that ends by itself; minus the signal if one killed it."""
        return self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """As a server that ends does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Twins:
    """The same requests to a server with a cold store and to one without; their answers are the same."""

    def __init__(self, cold: ServerProcess, plain: ServerProcess, *, protocol: int = 2) -> None:
        self.cold_server = cold
        self.place = open_place("", cold.store_folder)
        self.cold, self.plain = cold.connect(protocol=protocol), plain.connect(protocol=protocol)

    @property
    def gate(self) -> Path:
        """While this file is there, the server waits for its cold store."""
        return gate_of(self.cold_server.folder)

    @property
    def notes(self) -> str:
        """Who has read blocks while the event loop waited."""
        notes = notes_of(self.cold_server.folder)
        return notes.read_text() if notes.exists() else ""

    def forget_notes(self) -> None:
        notes_of(self.cold_server.folder).unlink(missing_ok=True)

    def do(self, *words: Word) -> Any:
        one, other = said(self.cold.do(*words)), said(self.plain.do(*words))
        if words[:2] == ("XINFO", "STREAM"):
            one, other = known_of_stream(one), known_of_stream(other)
        assert one == other, words
        return one

    def add(self, name: str, ids: Iterable[int], size: int) -> None:
        """Entries, each of which tells its id, in pipelines."""
        numbers = list(ids)
        for start in range(0, len(numbers), AT_ONCE):
            some = numbers[start : start + AT_ONCE]
            lines = b"".join(
                request("XADD", name, f"{number}-{number % 3}", "n", number, "v", b"v" * size) for number in some
            )
            for peer in (self.cold, self.plain):
                peer.send(lines)
            assert said(self.cold.replies(len(some))) == said(self.plain.replies(len(some)))

    def assert_alike(self, *names: str) -> None:
        """What can be read of these topics is the same, from both ends."""
        for name in names:
            self.do("XLEN", name)
            self.do("XRANGE", name, "-", "+")
            self.do("XREVRANGE", name, "+", "-")
            self.do("XINFO", "STREAM", name)

    def close(self) -> None:
        self.cold.close()
        self.plain.close()


def gate_of(folder: Path) -> Path:
    return folder / "gate"


def notes_of(folder: Path) -> Path:
    return folder / "notes"


def gated(folder: Path) -> dict[str, str]:
    """The environment of a server whose cold store has a gate."""
    return {
        "PYTHONPATH": os.pathsep.join([str(GATE), os.environ.get("PYTHONPATH", "")]),
        "RLITE_COLD_GATE": str(gate_of(folder)),
        "RLITE_COLD_NOTES": str(notes_of(folder)),
    }


def said(reply: Any) -> Any:
    """A reply that can be compared: errors are their texts."""
    if isinstance(reply, Exception):
        return "error", str(reply)
    if isinstance(reply, list):
        return [said(each) for each in reply]
    if isinstance(reply, dict):
        return {key: said(value) for key, value in reply.items()}
    return reply


def known_of_stream(reply: Any) -> Any:
    """What XINFO STREAM says, but for how Redis would keep it in memory."""
    if not isinstance(reply, list):
        return reply
    return {word: value for word, value in pairs(reply).items() if not word.startswith(b"radix-tree-")}


def about(peer: Peer, name: str) -> dict[bytes, Any]:
    """TOPIC.INFO."""
    return pairs(peer.do("TOPIC.INFO", name))


def blocks(peer: Peer, name: str) -> list[dict[bytes, Any]]:
    """Those of TOPIC.BLOCKS."""
    return [pairs(each) for each in pairs(peer.do("TOPIC.BLOCKS", name))[b"blocks"]]


def pairs(reply: Any) -> dict[bytes, Any]:
    """A map, of whatever protocol."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def hot_bytes(peer: Peer, name: str) -> int:
    found = about(peer, name)
    return int(found[b"bytes"] - found[b"cold-bytes"])


def until_sealed(peer: Peer, name: str, block_bytes: int) -> None:
    """All of a topic that is to be sealed is, and there is something."""

    def is_sealed() -> bool:
        found = pairs(peer.do("TOPIC.BLOCKS", name))
        known = found[b"blocks"]
        is_whole = bool(known) and pairs(known[-1])[b"last"] == found[b"sealed-to"]
        return is_whole and hot_bytes(peer, name) < block_bytes

    until(is_sealed, f"the sealing of {name}")


def folder_of(peer: Peer, name: str) -> str:
    """Where in the cold store a topic's files are."""
    return f"{name}/{pairs(peer.do('TOPIC.BLOCKS', name))[b'number']}/"


def files_of(twins: Twins, name: str) -> list[str]:
    """The block files of a topic that are there."""
    folder = folder_of(twins.cold, name)
    return [found.path for found in twins.place.files(folder[:-1]) if found.path.endswith(".parquet")]


def wrong_files(twins: Twins, name: str) -> list[checking.Checked]:
    """What `rlite-pubsub cold verify` would complain of."""
    folder = folder_of(twins.cold, name)
    return [each for each in checking.verify(twins.place) if each.is_wrong and each.path.startswith(folder)]
