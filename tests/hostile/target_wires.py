"""Bytes that were requests once: RESP, and HTTP, over connections that end anywhere."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from damaged_requests import damaged
from mutations import SEEDS, TOKENS, mutated
from victim import Found, OfServer, Victim

_SAID_OFTEN = re.compile(r"SECURITY ATTACK|Protocol error|Error trying|Closing|client", re.IGNORECASE)
CALM_AFTER = 1000
"""Attacks: what they have stored is removed."""


class Resp(OfServer):
    """Attacks a server of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            Victim(folder, "--maxclients", "1000", expected=lambda line: _SAID_OFTEN.search(line) is not None)
        )

    def attack(self, chance: Random) -> None:
        data = mutated(chance, [*SEEDS, *TOKENS])
        what = f"stream {data[:300]!r}"
        self.victim.watch(what, lambda: self.victim.throw(data))


class Http(OfServer):
    """Attacks a server of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Victim(folder, "--http-body-timeout", "1"))
        self._done = 0

    def attack(self, chance: Random) -> None:
        data = damaged(chance)
        what = f"request {data[:300]!r}"
        self.victim.watch(what, lambda: self._ask(data))
        self._done += 1
        if self._done % CALM_AFTER == 0:
            self.start_over()

    def _ask(self, data: bytes) -> None:
        answer = self.victim.throw_http(data)
        if answer and re.match(rb"HTTP/1\.[01] (?!500)[1-5]\d\d ", answer) is None:
            raise Found(f"{answer[:200]!r} to {data!r}")
