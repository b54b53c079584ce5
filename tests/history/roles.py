"""What the processes of a history do. Each is forked from one that has imported everything."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import redis

from rlite_pubsub.cli import proof, serve
from rlite_pubsub.storage.store import Store
from tests.history.lines import LibraryLine, Line, Lost, Refused, SocketLine
from tests.history.operations import OK, REFUSED, Page
from tests.history.requests import Author, last_words, preparations
from tests.soak.ledger import END_CHANNEL
from tests.soak.worker import CONNECTION_LOST, Worker

RECONNECT_S = 0.02
MOST_PAUSE_S = 0.006
GAVE_UP = 4
"""The exit status of a reader that a full disk has refused, or that redis-py did not have wait for longer."""
PATIENCE_WITH_WRITERS_S = 1
EXPECTED_REFUSALS = ("No space left", "BUSY command not executed", "is busy: another process has begun to write")


def serve_store(store: Path, address: Path, said: Path) -> int:
    """A server that is found by its address: a file with its port, beside its unix socket."""
    words = ["--port", address.read_text(), "--unixsocket", str(address.with_suffix(".sock")), "--dir", str(store)]
    patience = ["--writer-patience", str(PATIENCE_WITH_WRITERS_S)]
    return serve.main(["serve", *words, *patience, "--logfile", str(said)])


def ask_at_random(
    way: str, store: Path, address: Path, page: Path, life: int, dice: random.Random, stop_file: Path,
    tick: Callable[[], None],
) -> int:  # fmt: skip
    """A client, until it is time to stop."""
    history = Page(page)
    author = Author(page.stem, life, dice)
    line: Line | None = None
    number = 0
    while not stop_file.exists():
        if line is None:
            try:
                line = _new_line(way, store, address, dice)
            except Lost as failure:
                history.lost(str(failure))
                time.sleep(RECONNECT_S)
                continue
        number += 1
        request = author.next(number)
        history.asked(number, request.kind, request.key, request.value)
        try:
            result = request.understand(line.ask(request.commands))
        except Refused as refusal:
            history.answered(number, REFUSED, str(refusal))
        except Lost as failure:
            history.lost(str(failure))
            line.close()
            line = None
        else:
            history.answered(number, OK, result)
        tick()
        time.sleep(dice.random() * MOST_PAUSE_S)  # the others want the processors too
    if line is not None:
        line.close()
    return 0


def _new_line(way: str, store: Path, address: Path, dice: random.Random) -> Line:
    if way == "socket":
        return SocketLine(address, dice)
    return LibraryLine.to_server(address) if way == "library" else LibraryLine.to_folder(store)


def listen(role: str, target: str, page: Path, seed: int, stop_file: Path) -> int:
    """A subscriber of the soak, and its page of the ledger."""
    is_served = "://" in target
    try:
        worker = Worker(target, seed, str(page), str(stop_file))
        if role == "asyncio":
            asyncio.run(worker.subscribe_in_asyncio())
        elif role == "durable":
            worker.subscribe_carefully() if is_served else worker.subscribe_durably()
        else:
            worker.subscribe(worker.dice)
    except (redis.ConnectionError, ConnectionError):
        if not is_served:
            raise
        return CONNECTION_LOST
    except redis.TimeoutError:
        if not is_served:
            raise
        return GAVE_UP
    except redis.RedisError as failure:
        if not any(words in str(failure) for words in EXPECTED_REFUSALS):
            raise
        return GAVE_UP
    return 0


def prepare(store: Path) -> int:
    """A new store."""
    line = LibraryLine.to_folder(store)
    for words in preparations():
        line.ask([words])
    line.close()
    return 0


def say_the_end(store: Path) -> int:
    line = LibraryLine.to_folder(store)
    line.ask([("PUBLISH", END_CHANNEL, "all")])
    line.close()
    return 0


def look(store: Path, page: Path, proven: Path) -> int:
    """All that is there at the end, and whether the records fit each other."""
    history = Page(page)
    line = LibraryLine.to_folder(store)
    for number, request in enumerate(last_words(), 1):
        history.asked(number, request.kind, request.key, request.value)
        history.answered(number, OK, request.understand(line.ask(request.commands)))
    with Store.open(store) as opened:
        proven.write_text(json.dumps(list(proof.faults(opened, str(store)))))
    line.close()
    return 0
