"""A session whose replies are read."""

from __future__ import annotations

from typing import Any

import hiredis
from recorded_session import House


class ParsedSession:
    """Speaks RESP3."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.session = house.session()
        self._reader = hiredis.Reader()
        self.do("HELLO", "3")

    def do(self, *words: bytes | str | int) -> Any:
        """The reply; False if there is none yet."""
        return self._parsed(self.session.do(*[b"%d" % word if isinstance(word, int) else word for word in words]))

    def heard(self) -> Any:
        """What was said meanwhile; False if nothing."""
        return self._parsed(self.session.heard())

    def _parsed(self, said: bytes) -> Any:
        self._reader.feed(said)
        return self._reader.gets()
