"""Globs wherever they are taken, over names that are long and alike, and regular expressions of readers of events."""

from __future__ import annotations

import urllib.parse
from pathlib import Path
from random import Random

import bad_words
from victim import Found, OfServer, Victim

LONG_NAMES = [b"a" * 5000, b"a" * 5000 + b"b", b"ab" * 2000, b"[" * 300, b"\\" * 300, bytes(range(256)) * 4, b"", b"a"]
PIECES = [
    b"a",
    b"b",
    b"*",
    b"?",
    b"[",
    b"]",
    b"^",
    b"-",
    b"\\",
    b"[ab]",
    b"[^a]",
    b"*a",
    b"a*b",
    b"\xff",
    b"\0",
    b"a?",
    b"**",
]
REGEXP_PIECES = [
    "a", "b", ".", "*", "+", "?", "{1,1000}", "{1000}", "{0,}", "(", ")", "(?:", "(?i)", "(?P<n>", "|", "[", "]",
    "[^a]",
    "^", "$", "\\", "\\b", "\\1", "\\pL", "\\x{10ffff}", "(a*)*", "(a|aa)+", "(.*)(.*)(.*)", "[a-z]{50}", "\\C",
    "é", "\0",
    "(?=a)", "((((((((((", "))", "\\Q", "\\E", "[[:alpha:]]", "(?s).", "a{2147483648}", "\ud800",
]  # fmt: skip


class Patterns(OfServer):
    """Attacks a server of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Victim(folder))

    def fill(self) -> None:
        for name in LONG_NAMES:
            self.victim.control("SET", name, "1")
            self.victim.control("HSET", "hash", name, "1")
            self.victim.control("ZADD", "sorted", 1, name)
        for number in range(200):
            self.victim.control("SET", b"a" * 100 + b"%d" % number, "1")
        for type in ("a" * 500, "ab" * 200, "order.created", "x"):
            self.victim.server.post(type, b"body")

    def attack(self, chance: Random) -> None:
        if chance.random() < 0.25:
            return self._regexp(chance)
        pattern = _glob(chance)
        what, requests = self._ways(chance, pattern)
        self.victim.watch(f"{what} {pattern[:300]!r}*{len(pattern)}", lambda: self.victim.ask(requests))
        if what in ("PSUBSCRIBE", "TRACKING"):
            self.victim.forget_attacker()

    def _ways(self, chance: Random, pattern: bytes) -> tuple[str, list[list[bytes | str | int]]]:
        count = chance.choice((1, 10, 1000))
        ways: list[tuple[str, list[list[bytes | str | int]]]] = [
            ("KEYS", [["KEYS", pattern]]),
            ("SCAN", [["SCAN", 0, "MATCH", pattern, "COUNT", count]]),
            ("HSCAN", [["HSCAN", "hash", 0, "MATCH", pattern, "COUNT", count]]),
            ("ZSCAN", [["ZSCAN", "sorted", 0, "MATCH", pattern]]),
            ("CONFIG", [["CONFIG", "GET", pattern]]),
            ("PUBSUB", [["PUBSUB", "CHANNELS", pattern]]),
            (
                "ACL",
                [
                    ["ACL", "SETUSER", "u", "on", b"~" + pattern, b"&" + pattern],
                    ["ACL", "DRYRUN", "u", "GET", LONG_NAMES[0]],
                ],
            ),
            (
                "PSUBSCRIBE",
                [["HELLO", 3], ["PSUBSCRIBE", pattern, pattern + b"*"]]
                + [["PUBLISH", name, "x"] for name in LONG_NAMES],
            ),
            ("TRACKING", [["HELLO", 3], ["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", pattern[:100]]]),
        ]
        return chance.choice(ways)

    def _regexp(self, chance: Random) -> str:
        pattern = "".join(chance.choices(REGEXP_PIECES, k=chance.choice((1, 3, 8, 30, 200))))
        query = urllib.parse.quote(pattern.encode(errors="surrogatepass"))
        head = f"GET /api/events?typeMatcher={query} HTTP/1.1\r\nhost: localhost\r\nlast-event-id: 0-0\r\n\r\n"
        what = f"typeMatcher {pattern[:300]!r}"
        self.victim.watch(what, lambda: self._get(head.encode(), what))

    def _get(self, head: bytes, what: str) -> None:
        answer = self.victim.throw_http(head)
        if answer and not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400", b"HTTP/1.1 414", b"HTTP/1.1 431")):
            raise Found(f"{answer[:200]!r} to {what}")


def _glob(chance: Random) -> bytes:
    if chance.random() < 0.3:
        return chance.choice(bad_words.PATTERNS)
    unit = b"".join(chance.choices(PIECES, k=chance.randrange(1, 8)))
    return unit * chance.choice((1, 1, 2, 10, 300, 3000)) + b"".join(chance.choices(PIECES, k=chance.randrange(4)))
