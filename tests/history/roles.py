"""What the processes of a history do. Each is forked from one that has imported everything."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import time
from pathlib import Path

import redis

import rlite_pubsub.gateway.service  # noqa: F401  each life is forked from one that has all of it
from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.cli.serving import serve
from rlite_pubsub.storage.store import Store
from tests.gateway.event_source import EventSource
from tests.history.lines import EventLine, LibraryLine, Line, Lost, Refused, SocketLine, entry_id
from tests.history.operations import OK, REFUSED, Page
from tests.history.requests import LAST_EVENT, Author, last_words, preparations
from tests.history.watchdog import Slots
from tests.soak.ledger import END_CHANNEL
from tests.soak.worker import CONNECTION_LOST, Worker

RECONNECT_S = 0.02
HTTP = ".http"
"""The end of the name of the file with a server's HTTP port."""
MOST_PAUSE_S = 0.006
GAVE_UP = 4
"""The exit status of a reader that a full disk has refused, or that redis-py did not have wait for longer."""
PATIENCE_WITH_WRITERS_S = 1
EXPECTED_REFUSALS = (
    "No space left",
    "Input/output error",
    "BUSY command not executed",
    "PARTIAL some receivers may have the message",
)
"""LMDB does not say why a write came out short. Where the disk is full no more when it is asked, nobody knows."""


def serve_store(store: Path, address: Path, said: Path) -> int:
    """A server that is found by its address: a file with its port, beside its unix socket."""
    words = ["--port", address.read_text(), "--unixsocket", str(address.with_suffix(".sock")), "--dir", str(store)]
    patience = ["--writer-patience", str(PATIENCE_WITH_WRITERS_S)]
    port = address.with_suffix(HTTP)
    web = ["--http-port", port.read_text()] if port.exists() else []
    return serve.main([*words, *patience, *web, "--logfile", str(said)])


def ask_at_random(
    way: str, store: Path, address: Path, web: Path, page: Path, life: int, dice: random.Random, stop_file: Path,
    slots: Slots, place: int,
) -> int:  # fmt: skip
    """A client, until it is time to stop. `web`: the address of the server that speaks HTTP."""
    history = Page(page)
    author = Author(page.stem, life, dice)
    lines: dict[tuple[str | None, bool], Line] = {}  # by who asks, and whether over HTTP
    number = 0
    while not stop_file.exists():
        request = author.next(number + 1)
        whose = request.user, request.is_event
        slots.ask(place)
        if whose not in lines:
            try:
                lines[whose] = _new_line(way, store, web if request.is_event else address, dice, *whose)
            except Lost as failure:
                history.lost(str(failure))
                slots.rest(place)
                time.sleep(RECONNECT_S)
                continue
        number += 1
        history.asked(number, request.kind, request.key, request.value)
        try:
            result = request.understand(lines[whose].ask(request.commands))
        except Refused as refusal:
            history.answered(number, REFUSED, str(refusal))
        except Lost as failure:
            history.lost(str(failure))
            lines.pop(whose).close()
        else:
            history.answered(number, OK, result)
        slots.rest(place)
        time.sleep(dice.random() * MOST_PAUSE_S)  # the others want the processors too
    for line in lines.values():
        line.close()
    return 0


def _new_line(
    way: str, store: Path, address: Path, dice: random.Random, user: str | None, is_event: bool
) -> Line:
    if is_event:
        return EventLine(int(address.with_suffix(HTTP).read_text()))
    if way == "socket":
        return SocketLine(address, dice, user)
    return LibraryLine.to_server(address, user) if way == "library" else LibraryLine.to_folder(store, user)


def follow_events(web: Path, page: Path) -> int:
    """A reader of the stream of events, which comes back with the id of the last that it was told, to whoever serves
    there by then; until the last of all."""
    descriptor = os.open(page, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    last_id = ""
    while True:
        source: EventSource | None = None
        try:
            source = EventSource(int(web.with_suffix(HTTP).read_text()), last_id=last_id)
            while True:
                event = source.next()
                is_last = event.type == LAST_EVENT
                told = entry_id(event.id) if event.type == "thing" else f"{event.type} {event.data}"
                os.write(descriptor, (json.dumps([told, is_last]) + "\n").encode())
                if is_last:
                    return 0
                last_id = event.id
        except (OSError, http.client.HTTPException, StopIteration):
            time.sleep(RECONNECT_S)
        finally:
            if source is not None:
                source.close()


def listen(role: str, target: str, page: Path, seed: int, stop_file: Path, filled_file: Path) -> int:
    """A subscriber of the soak, and its page of the ledger."""
    is_served = "://" in target
    try:
        worker = Worker(target, seed, str(page), str(stop_file), filled_file)
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
    line.ask([("XADD", "events", "*", "type", LAST_EVENT, "body", "all")])
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
