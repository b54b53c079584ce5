"""All keys of a database, by SCAN: listed one a line (`--scan`), or measured (`--bigkeys`, `--memkeys`, `--hotkeys`).

What is printed is what redis-cli prints. The server goes on meanwhile: a batch of keys costs it one pipeline.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import Dialogue
from rlite_pubsub.engine.stats.monitor import quoted
from rlite_pubsub.protocol.replies import Error, Reply

_PAUSE_EVERY = 100
"""Batches, between two pauses of a survey."""
_HOTTEST = 16
"""Keys that `--hotkeys` names."""
_SAY_EVERY = 1_000_000
"""Keys, between two lines that say how far a survey is."""


@dataclass
class _Kind:
    """The keys of one type that have been seen."""

    name: str
    command: bytes = b""
    """Which answers the size of a key; b"" for types that only a module knows."""
    unit: str = "?"
    keys: int = 0
    size: int = 0
    biggest: int = 0
    biggest_key: bytes | None = None

    def add(self, key: bytes, size: int) -> bool:
        """Count a key; whether it is the biggest so far."""
        self.keys += 1
        self.size += size
        if size <= self.biggest:
            return False
        self.biggest, self.biggest_key = size, key
        return True


def _kinds() -> dict[bytes, _Kind]:
    known = (
        _Kind("list", b"LLEN", "items"),
        _Kind("hash", b"HLEN", "fields"),
        _Kind("string", b"STRLEN", "bytes"),
        _Kind("stream", b"XLEN", "entries"),
        _Kind("set", b"SCARD", "members"),
        _Kind("zset", b"ZCARD", "members"),
    )
    return {kind.name.encode(): kind for kind in known}


def list_keys(dialogue: Dialogue, pattern: bytes | None, pause_s: float, *, quotes: bool) -> None:
    """Print every key that matches, and pause after each batch. Raises CommandFailed, OSError and ConnectionLost."""
    for keys in _batches(dialogue, pattern):
        shown = b"".join([(quoted(key) if quotes else key) + b"\n" for key in keys])
        sys.stdout.buffer.write(shown)
        sys.stdout.buffer.flush()
        time.sleep(pause_s)


def survey(
    dialogue: Dialogue, pattern: bytes | None, pause_s: float, *, by_memory: bool, samples: int | None = None
) -> None:
    """Print the biggest key of each type and the average sizes: by elements, or by memory. For memory, the server looks
    at `samples` elements of a key, or at as many as it chooses (None). Raises as `list_keys` does."""
    total = _whole(dialogue, [b"DBSIZE"])
    kinds = _kinds()
    print("\n# Scanning the entire keyspace to find biggest keys as well as")
    print("# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec")
    print("# per 100 SCAN commands (not usually needed).\n")
    options = [b"SAMPLES", b"%d" % samples] if samples is not None else []
    seen = length = 0
    for number, keys in enumerate(_batches(dialogue, pattern), 1):
        percent = 100 * seen / total if total else 0
        for key, kind, size in _measured(dialogue, keys, kinds, options if by_memory else None):
            seen += 1
            length += len(key)
            if kind.add(key, size):
                unit = "bytes" if by_memory else kind.unit
                what = f"Biggest {kind.name:6} found so far '{_text(key)}' with {size} {unit}"
                print(f"[{percent:05.2f}%] {what}", flush=True)
            if seen % _SAY_EVERY == 0:
                print(f"[{percent:05.2f}%] Sampled {seen} keys so far", flush=True)
        if number % _PAUSE_EVERY == 0:
            time.sleep(pause_s)
    _summarize(list(kinds.values()), seen, length, by_memory=by_memory)


def find_hot_keys(dialogue: Dialogue, pattern: bytes | None, pause_s: float) -> None:
    """Print the keys that are used most, by the server's counters. Raises as `list_keys` does, and CommandFailed where
    the server does not count."""
    total = _whole(dialogue, [b"DBSIZE"])
    print("\n# Scanning the entire keyspace to find hot keys as well as")
    print("# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec")
    print("# per 100 SCAN commands (not usually needed).\n")
    hottest: list[tuple[int, bytes]] = []  # the least used first
    seen = 0
    for number, keys in enumerate(_batches(dialogue, pattern), 1):
        percent = 100 * seen / total if total else 0
        for key, counter in zip(keys, _counters(dialogue, keys), strict=True):
            seen += 1
            if seen % _SAY_EVERY == 0:
                print(f"[{percent:05.2f}%] Sampled {seen} keys so far", flush=True)
            place = sum(counter > other for other, _ in hottest)
            if counter and (place or len(hottest) < _HOTTEST):
                hottest.insert(place, (counter, key))
                del hottest[:-_HOTTEST]
                found = f"Hot key '{_text(key)}' found so far with counter {counter}"
                print(f"[{percent:05.2f}%] {found}", flush=True)
        if number % _PAUSE_EVERY == 0:
            time.sleep(pause_s)
    print(f"\n-------- summary -------\n\nSampled {seen} keys in the keyspace!")
    for counter, key in reversed(hottest):
        print(f"hot key found with counter: {counter}\tkeyname: {_text(key)}")


def _counters(dialogue: Dialogue, keys: list[bytes]) -> list[int]:
    """Return how much each is used; 0 for those that are gone by now."""
    found = []
    for reply in dialogue.ask_all([[b"OBJECT", b"FREQ", key] for key in keys]):
        if isinstance(reply, Error):
            raise CommandFailed(f"OBJECT FREQ failed: {reply.decode(errors='backslashreplace')}")
        found.append(reply if isinstance(reply, int) else 0)
    return found


def _summarize(kinds: list[_Kind], seen: int, length: int, *, by_memory: bool) -> None:
    print("\n-------- summary -------\n")
    print(f"Sampled {seen} keys in the keyspace!")
    print(f"Total key length in bytes is {length} (avg len {length / seen if seen else 0:.2f})\n")
    for kind in kinds:
        if kind.biggest_key is not None:
            unit = "bytes" if by_memory else kind.unit
            print(f"Biggest {kind.name:>6} found '{_text(kind.biggest_key)}' has {kind.biggest} {unit}")
    print()
    for kind in kinds:
        unit = "bytes" if by_memory else kind.unit
        share, average = (100 * kind.keys / seen, kind.size / kind.keys) if kind.keys else (0.0, 0.0)
        what = f"{share:05.2f}% of keys, avg size {average:.2f}"
        print(f"{kind.keys} {kind.name}s with {kind.size} {unit} ({what})")


def _measured(
    dialogue: Dialogue, keys: list[bytes], kinds: dict[bytes, _Kind], memory_options: list[bytes] | None
) -> Iterator[tuple[bytes, _Kind, int]]:
    """Keys with their kinds and sizes, in the order of `keys`; those that are gone by now are left out."""
    found: list[tuple[bytes, _Kind]] = []
    for key, name in zip(keys, dialogue.ask_all([[b"TYPE", key] for key in keys]), strict=True):
        if isinstance(name, Error):
            raise CommandFailed(f"TYPE failed: {name.decode(errors='backslashreplace')}")
        assert isinstance(name, bytes)
        if name != b"none":
            found.append((key, kinds.setdefault(name, _Kind(name.decode(errors="backslashreplace")))))
    requests = [
        [b"MEMORY", b"USAGE", key, *memory_options] if memory_options is not None else [kind.command, key]
        for key, kind in found
        if memory_options is not None or kind.command
    ]
    sizes = iter(dialogue.ask_all(requests))
    for key, kind in found:
        size = next(sizes) if memory_options is not None or kind.command else 0
        yield key, kind, size if isinstance(size, int) else 0  # another type, or gone, since it was asked for


def _batches(dialogue: Dialogue, pattern: bytes | None) -> Iterator[list[bytes]]:
    cursor = b"0"
    matching = [b"MATCH", pattern] if pattern is not None else []
    while True:
        cursor, keys = _reply(dialogue, [b"SCAN", cursor, *matching])
        yield keys
        if cursor == b"0":
            return


def _whole(dialogue: Dialogue, request: list[bytes]) -> int:
    reply = _reply(dialogue, request)
    assert isinstance(reply, int)
    return reply


def _reply(dialogue: Dialogue, request: list[bytes]) -> Reply:
    [reply] = dialogue.ask_all([request])
    if isinstance(reply, Error):
        raise CommandFailed(f"{request[0].decode()} failed: {reply.decode(errors='backslashreplace')}")
    return reply


def _text(key: bytes) -> str:
    return quoted(key).decode("ascii")
