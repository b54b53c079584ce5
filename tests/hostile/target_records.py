"""Records of data.mdb, damaged under a server that has the store open, and before it starts: it answers all that is
asked of them, with what is there or with an error, and ends in no other way than it is told to."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from random import Random

import hiredis
import lmdb
from damage import damaged
from target_payloads import CHANGE, READ
from victim import Found, Garbled, OfServer, Victim, Words

TOKENS = [
    bytes(8),
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
    bytes(4),
    b"\xff" * 4,
    b"\0",
    b"\xff",
    bytes(16),
    b"\0\0\0\x01",
    b"{}",
]
KEYS = [
    b"string",
    b"list",
    b"long-list",
    b"set",
    b"long-set",
    b"hash",
    b"long-hash",
    b"zset",
    b"long-zset",
    b"topic",
    b"queue",
]
RESTART_EVERY = 40


class Records(OfServer):
    """Attacks a server of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.garbled = 0
        self.errors: Counter[str] = Counter()
        super().__init__(self._start())
        self._file = str(self.victim.server.store_folder / "data.mdb")
        self._truth = self._records()
        self._done = 0

    def fill(self) -> None:
        for words in _CONTENTS:
            reply = self.victim.control(*words)
            assert not isinstance(reply, Exception), (words, reply)

    def check_memory(self) -> int:
        return self.victim.check_memory()

    def _start(self) -> Victim:
        return Victim(self._folder, expected=lambda line: True)

    def attack(self, chance: Random) -> None:
        self._done += 1
        starts_anew = self._done % RESTART_EVERY == 0
        if starts_anew:
            self._end()
        changed = self._changed(chance)
        self._write(changed)
        if starts_anew:
            self._begin(changed)
        what = " ".join(f"{old.hex()}: {new.hex() if new else new}" for old, new in changed.items())[:2000]
        requests = _requests(chance)
        try:
            self.victim.watch("records " + what, lambda: self._ask(requests))
        finally:
            if self.victim.server.process.poll() is None:
                self._write(self._truth, clears=True)

    def _ask(self, requests: list[Words]) -> None:
        for words in requests:
            try:
                replies = self.victim.ask([words])
            except (hiredis.ProtocolError, MemoryError, Garbled):  # entries are sent as the bytes that are stored
                self.garbled += 1
                self.victim.forget_attacker()
                continue
            for reply in replies:
                if isinstance(reply, Exception):
                    self.errors[str(reply)[:40]] += 1
                if "internal error" in str(reply):
                    raise Found(f"{words!r}: {reply!r}")

    def _changed(self, chance: Random) -> dict[bytes, bytes | None]:
        """One or two records, of a kind that each is as likely to be of as any other."""
        kinds = sorted({key[:1] for key in self._truth})
        changed: dict[bytes, bytes | None] = {}
        for _ in range(chance.choice((1, 1, 2))):
            kind = chance.choice(kinds)
            key = chance.choice(sorted(key for key in self._truth if key.startswith(kind)))
            value = self._truth[key]
            match chance.randrange(8):
                case 0:
                    changed[key] = None
                case 1:
                    changed[key] = None
                    changed[(kind + damaged(chance, key[1:], TOKENS, 1))[:511]] = value
                case 2:
                    changed[key] = chance.choice([each for name, each in self._truth.items() if name.startswith(kind)])
                case _:
                    changed[key] = damaged(chance, value, TOKENS)
        return changed

    def _records(self) -> dict[bytes, bytes]:
        with self._open() as data, data.begin() as txn:
            return {bytes(key): bytes(value) for key, value in txn.cursor()}

    def _write(self, records: dict[bytes, bytes | None] | dict[bytes, bytes], *, clears: bool = False) -> None:
        with self._open() as data, data.begin(write=True) as txn:
            if clears:
                for key in [bytes(key) for key, _ in txn.cursor()]:
                    txn.delete(key)
            for key, value in records.items():
                if value is None:
                    txn.delete(key)
                else:
                    txn.put(key, value)

    def _open(self) -> contextlib.AbstractContextManager[lmdb.Environment]:
        return contextlib.closing(lmdb.open(self._file, subdir=False, map_size=1 << 30, max_readers=2048, sync=False))

    def _end(self) -> None:
        self.victim.close_gently()

    def _begin(self, changed: dict[bytes, bytes | None]) -> None:
        log = self._folder / "log"
        log_bytes = log.stat().st_size
        try:
            self.victim = self._start()
        except AssertionError:
            said = log.read_text()[log_bytes:]
            if "Traceback" in said or " # " not in said:
                raise Found(f"it did not start over {changed!r}: {said}") from None
            self._write(self._truth, clears=True)  # it has said why it doesn't start
            self.victim = self._start()


def _requests(chance: Random) -> list[Words]:
    """All that is there is read, then some of it is changed."""
    requests: list[Words] = [
        ("DBSIZE",),
        ("SCAN", 0, "COUNT", 100),
        ("KEYS", "*"),
        ("INFO", "everything"),
        ("ACL", "LIST"),
    ]
    for key in KEYS:
        requests += [("TYPE", key), ("OBJECT", "ENCODING", key), ("DUMP", key), ("TTL", key), ("MEMORY", "USAGE", key)]
        kind = key.removeprefix(b"long-")
        kind = b"stream" if kind in (b"topic", b"queue") else kind
        requests += [(name, key, *rest) for name, *rest in READ[kind]]
        if chance.random() < 0.3:
            requests += [
                (name, rest[0], key, *rest[1:]) if name == "XGROUP" else (name, key, *rest)
                for name, *rest in CHANGE[kind]
            ]
    requests += [
        ("XINFO", "STREAM", "topic", "FULL"), ("XINFO", "GROUPS", "topic"), ("XINFO", "CONSUMERS", "topic", "g"),
        ("XREADGROUP", "GROUP", "g", "e", "COUNT", 5, "STREAMS", "topic", ">"), ("XACK", "topic", "g", "1-1"),
        ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "topic", "0"), ("XAUTOCLAIM", "topic", "g", "e", 0, 0),
        ("TOPIC.INFO", "topic"), ("TOPIC.LIST",), ("TOPIC.CONFIG", "topic", "GET"), ("TOPIC.DEFERRED", "topic"),
        ("TOPIC.BLOCKS", "topic"),
        ("QUEUE.LIST",), ("QUEUE.POP", "queue", "worker"), ("QUEUE.PUSH", "queue", "x"), ("QUEUE.PEEK", "queue"),
        ("SUBSCRIBER.LIST",), ("SUBSCRIBER.INFO", "away"), ("PUBLISH", "news", "x"), ("PUBSUB", "NUMSUB", "news"),
        ("ACL", "GETUSER", "u"), ("CONFIG", "GET", "*"), ("DEBUG", "DIGEST"), ("SWAPDB", 0, 1), ("SWAPDB", 0, 1),
        ("COPY", "topic", "copy"), ("RENAME", "hash", "hash2"), ("RENAME", "hash2", "hash"), ("RANDOMKEY",),
        ("DEL", "copy"),
        ("TOPIC.MARKS",), ("TOPIC.SYNC",), ("WAIT", 0, 0),
    ]  # fmt: skip
    if chance.random() < 0.2:
        requests += [("DEL", *KEYS), ("FLUSHALL",), ("SET", "a", "b"), ("GET", "a")]
    return requests


_MANY = 400
_CONTENTS: list[Words] = [
    ("SET", "string", "hello", "EX", 100_000),
    ("RPUSH", "list", "a", "b", "c"),
    ("RPUSH", "long-list", *(f"element {number}" for number in range(_MANY))),
    ("SADD", "set", "a", "b"),
    ("SADD", "long-set", *(f"m{number}" for number in range(_MANY))),
    ("HSET", "hash", "a", "1", "b", "2"),
    ("HEXPIRE", "hash", 100_000, "FIELDS", 1, "b"),
    ("HSET", "long-hash", *(word for number in range(_MANY) for word in (f"f{number}", "v"))),
    ("HEXPIRE", "long-hash", 100_000, "FIELDS", 2, "f1", "f2"),
    ("ZADD", "zset", 1, "a", 2, "b"),
    ("ZADD", "long-zset", *(word for number in range(_MANY) for word in (number, f"m{number}"))),
    *(("XADD", "topic", f"{number}-1", "f", "v" * 90) for number in range(1, 60)),
    ("XGROUP", "CREATE", "topic", "g", 0),
    ("XREADGROUP", "GROUP", "g", "c", "COUNT", 20, "STREAMS", "topic", ">"),
    ("XDEL", "topic", "5-1", "30-1"),
    ("TOPIC.CONFIG", "topic", "SET", "RETAIN-LENGTH", 1000, "RETAIN-AGE", "30d"),
    ("TOPIC.DEFER", "topic", 4_000_000_000_000, "f", "later"),
    ("QUEUE.CREATE", "queue"),
    ("QUEUE.SUBSCRIBER", "queue", "worker"),
    ("QUEUE.PUSH", "queue", "item"),
    ("QUEUE.PUSH", "queue", "item 2"),
    ("QUEUE.POP", "queue", "worker"),
    ("ACL", "SETUSER", "u", "on", ">secret", "~k*", "+get"),
    ("CONFIG", "SET", "retain", "events.* 1000 entries"),
    ("SELECT", 1),
    ("SET", "other", "x"),
    ("SELECT", 0),
]
