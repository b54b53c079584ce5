"""A session that speaks of groups, with its replies parsed."""

from __future__ import annotations

from typing import Any

import hiredis

from .recorded_session import House, RecordedSession

NO_KEY = (
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option "
    "to create an empty stream automatically."
)
BAD_ID = "ERR Invalid stream ID specified as stream command argument"
BAD_NUMBER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


class GroupClient:
    """Errors come as their text."""

    def __init__(self, house: House, protocol: int = 2) -> None:
        self.house = house
        self.session: RecordedSession = house.session()
        if protocol == 3:
            self.session.do("HELLO", "3")

    def do(self, *words: object) -> Any:
        """Words may be one string of many."""
        split = words[0].split(" ") if len(words) == 1 and isinstance(words[0], str) else words
        said = self.session.do(*[word if isinstance(word, bytes) else str(word) for word in split])
        return self._parsed(said)

    def heard(self) -> Any:
        """What has come without having been asked for just now; None if nothing has."""
        return self._parsed(self.session.heard())

    @staticmethod
    def _parsed(said: bytes) -> Any:
        if not said:
            return None
        replies = hiredis.Reader()
        replies.feed(said)
        reply = replies.gets()
        assert replies.gets() is False
        return str(reply) if isinstance(reply, hiredis.ReplyError) else reply

    def add(self, *ids: str, key: str = "t") -> None:
        for entry_id in ids:
            assert self.do("XADD", key, entry_id, "f", "v" + entry_id) == entry_id.encode()

    def ids(self, reply: Any) -> list[bytes]:
        """The ids of the only key that XREADGROUP has answered with."""
        [[_, entries]] = reply if isinstance(reply, list) else [list(pair) for pair in reply.items()]
        return [entry[0] for entry in entries]

    def pending(self, group: str = "g") -> list[tuple[bytes, bytes, int, int]]:
        return [tuple(row) for row in self.do("XPENDING", "t", group, "-", "+", 1000)]
