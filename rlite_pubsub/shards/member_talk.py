"""What a member asks others about a key, wherever that is: it goes where their redirects say, as their clients do.

It waits for its peers, so it belongs to threads.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.shards.segment_pieces import FetchedPiece
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.replication.master_link import MasterAddress, MasterLink, MasterRefused
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.storage.topics.entry_ids import Id

PATIENCE_S: Final = 5.0
"""So long a key that is being moved is waited for."""
SILENCE_S: Final = 2.0
"""So long a member may say nothing. It is less than what clients wait for a reply: they are told which member it is."""
_PAUSE_S: Final = 0.02
_PLACE: Final = re.compile(r"(.*):([0-9]{1,5})")
_IDLE_LINKS: Final = 4
"""Of each member."""
_FOLLOWED: Final = ("MOVED", "ASK", "TRYAGAIN", "LOADING")
_TOLD: Final = ("NOSEGMENT", "TRYAGAIN", "LOADING")
"""What a client is told as it was said."""


class MemberTalk:
    """One process's connections to other members, for any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: dict[tuple[str, int], list[MasterLink]] = {}
        self._lock = threading.Lock()

    def ask(self, key: bytes, *words: bytes, is_bulk: bool = False) -> bytes:
        """Return what the member that has this key answers. Raises OSError, and CommandError with what it refuses."""
        until = time.monotonic() + PATIENCE_S
        address, is_asking = self._owner(key)
        while True:
            try:
                return self._said(address, is_asking, words, is_bulk)
            except OSError as failure:
                raise ConnectionError(f"{address[0]}:{address[1]}: {failure}") from failure
            except MasterRefused as refusal:
                kind, *rest = str(refusal).split(" ")
                if kind not in _FOLLOWED or time.monotonic() > until:
                    text = str(refusal) if kind in _TOLD else f"ERR the member at {address[0]}:{address[1]}: {refusal}"
                    raise CommandError(text.encode(errors="backslashreplace")) from refusal
                if kind in ("MOVED", "ASK") and len(rest) == 2 and (found := _PLACE.fullmatch(rest[1])) is not None:
                    before, address = address, (found[1], int(found[2]))
                    is_asking = kind == "ASK"
                    if address != before and time.monotonic() <= until:
                        continue
                time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Close the connections that are idle. The server ends."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for link in (link for links in idle.values() for link in links):
            link.close()

    def _owner(self, key: bytes) -> tuple[tuple[str, int], bool]:
        """Return the address of the member that has a key, as far as this one knows, and whether to ask behind
        ASKING. Raises OSError."""
        sharding, slot = self._engine.sharding, slot_of(key)
        taker, directory = sharding.leaving.get(slot), sharding.directory
        member = taker or (None if directory is None else directory.owners[slot])
        if member is None:
            raise ConnectionError("no member has its slot")
        return (member.host.decode(), member.port), taker is not None

    def _said(self, address: tuple[str, int], is_asking: bool, words: tuple[bytes, ...], is_bulk: bool) -> bytes:
        link = self._taken(address)
        if link is not None:
            try:
                return self._asked(link, address, is_asking, words, is_bulk)
            except TimeoutError:
                raise  # it would say nothing to another connection either
            except OSError:
                pass  # the member has closed it since it was used last
        return self._asked(self._connect(address), address, is_asking, words, is_bulk)

    def _asked(
        self, link: MasterLink, address: tuple[str, int], is_asking: bool, words: tuple[bytes, ...], is_bulk: bool
    ) -> bytes:
        try:
            if is_asking:
                link.ask(b"ASKING")
            reply = link.ask_bulk(*words) if is_bulk else link.ask(*words)
        except MasterRefused:
            self._give_back(link, address)
            raise
        except BaseException:
            link.close()
            raise
        self._give_back(link, address)
        return reply

    def _taken(self, address: tuple[str, int]) -> MasterLink | None:
        with self._lock:
            idle = self._idle.get(address)
            return idle.pop() if idle else None

    def _give_back(self, link: MasterLink, address: tuple[str, int]) -> None:
        with self._lock:
            idle = self._idle.setdefault(address, [])
            if len(idle) < _IDLE_LINKS:
                idle.append(link)
                return
        link.close()

    def _connect(self, address: tuple[str, int]) -> MasterLink:
        """Logged in as replicas are. Raises OSError, MasterRefused."""
        settings = self._engine.settings
        known = {"username": settings["masteruser"], "password": settings["masterauth"]}
        where = MasterAddress(*address, **known)
        link = MasterLink(where, min(float(settings["repl-timeout"]), SILENCE_S))
        try:
            link.introduce(where, 0)
        except BaseException:
            link.close()
            raise
        return link


def fetch(talk: MemberTalk, name: bytes, after: Id, count: int) -> FetchedPiece:
    """Return a segment's entries after an id. Raises OSError, CommandError."""
    said = talk.ask(name, b"SHARD.READ", name, entry_ids.text(after), b"%d" % count, is_bulk=True)
    chunk = Chunk(b"", said[entry_ids.BYTES :])
    return FetchedPiece(entry_ids.unpack(said), chunk if chunk.count else None)
