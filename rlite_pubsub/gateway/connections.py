"""The connections of every process of the store over HTTP: which of them keep up, and closing one."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.http.operation import Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import COUNT
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, TEXT, TRUTH, array, maybe, record

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_S = 1.5
"""Another process is waited for no longer."""
LOOK_S = 0.05
_CONNECTION = record(
    process=TEXT,
    pid=NUMBER,
    id=NUMBER,
    name=TEXT,
    addr=TEXT,
    user=NAME,
    kind={"type": "string", "enum": ["tcp", "unix", "http", "embedded"]},
    lib=TEXT,
    cmd=TEXT,
    db=NUMBER,
    age_ms=NUMBER,
    idle_ms=NUMBER,
    blocked=TRUTH,
    channels=NUMBER,
    patterns=NUMBER,
    shards=NUMBER,
    topics=NUMBER,
    channel_names=array(NAME),
    pattern_names=array(NAME),
    durable=maybe(NAME),
    buffered_bytes=NUMBER,
    disk_bytes=NUMBER,
    unsent_bytes=NUMBER,
    waiting_ms=NUMBER,
    input_bytes=maybe(NUMBER),
    output_bytes=maybe(NUMBER),
    at_ms=NUMBER,
)
_PROCESS = record(process=TEXT, pid=NUMBER, kind=TEXT, at_ms=NUMBER, connections=NUMBER, answers=TRUTH)
_KILL = {
    "type": "object",
    "required": ["process", "id"],
    "properties": {
        "process": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "id": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}
_UNTOLD_BEFORE: dict[str, object] = {"unsent_bytes": 0, "channel_names": [], "pattern_names": []}
"""By a process of an older version."""
_LAG = ("buffered_bytes", "disk_bytes", "unsent_bytes")
_IS_PROCESS = re.compile("[0-9a-f]{16}")


class ConnectionsResource:
    """The connections of one store."""

    def __init__(self, asking: Asking, now_ms: Callable[[], int]) -> None:
        self._asking = asking
        self._now_ms = now_ms

    @serves(
        "GET",
        "/api/connections",
        "Connections of every process of the store",
        about="The slowest readers come first, at most `count` of each process. `buffered_bytes` waits for the client "
        "in memory, `disk_bytes` on disk, `unsent_bytes` in the kernel, the oldest of it for `waiting_ms`. "
        "`input_bytes` and `output_bytes` are counted by the kernel since the connection began, and null where it does "
        "not tell; `at_ms` is when all this was so. A process that has not answered has `answers` false. Takes the "
        "right to SUBSCRIBER.CLIENTS.",
        parameters=(COUNT,),
        answers=as_json(record(processes=array(_PROCESS), connections=array(_CONNECTION))),
    )
    async def _list(self, request: Request) -> object:
        words = b"subscriber.clients", b"COUNT", b"%d" % COUNT.of(request.query)
        until = asyncio.get_running_loop().time() + ANSWER_S
        told = plain(await self._asking.ask(request, *words))
        while not all(each["at_ms"] for each in told) and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(LOOK_S)
            told = plain(await self._asking.ask(request, *words))
        processes, found = [], []
        for each in told:
            about = {"process": each["process"], "pid": each["pid"]}
            processes.append(
                {
                    **about,
                    "kind": each["kind"],
                    "at_ms": each["at_ms"],
                    "connections": each["total"],
                    "answers": self._now_ms() - each["at_ms"] < 4000,
                }
            )
            found += [{**about, **_told(client), "at_ms": each["at_ms"]} for client in each["clients"]]
        found.sort(key=lambda client: (-sum(client[name] for name in _LAG), -client["waiting_ms"]))
        return {"processes": processes, "connections": found}

    @serves(
        "POST",
        "/api/connections/kill",
        "Close a connection",
        about="`killed` is false where there is no such connection (any more), or its process has not answered in "
        "time. Takes the right to SUBSCRIBER.KILL.",
        body=as_json(_KILL),
        needs_body=True,
        answers=as_json(record(killed=TRUTH)),
        refusals=(404, 413),
    )
    async def _kill(self, request: Request) -> object:
        said = entry.loaded(await request.body(), "The body")
        process, client = (said.get("process"), said.get("id")) if isinstance(said, dict) else (None, None)
        if isinstance(client, float) and client.is_integer():
            client = int(client)
        is_process = isinstance(process, str) and _IS_PROCESS.fullmatch(process) is not None
        if not is_process or type(client) is not int or not 1 <= client < 1 << 63:
            raise Problem(400, "Bad request", "The body is a JSON object with `process` and `id` of a connection.")
        reply = await self._asking.ask(request, b"subscriber.kill", str(process).encode(), b"%d" % client)
        if isinstance(reply, int):
            return {"killed": bool(reply)}
        return {"killed": await self._is_gone(request, str(process), client)}

    async def _is_gone(self, request: Request, process: str, client: int) -> bool:
        """Wait for the process to say so."""
        asked_ms, until = self._now_ms(), asyncio.get_running_loop().time() + ANSWER_S
        while asyncio.get_running_loop().time() < until:
            for each in plain(await self._asking.ask(request, b"subscriber.clients")):
                if each["process"] == process and each["at_ms"] >= asked_ms:
                    if all(one["id"] != client for one in each["clients"]):
                        return True
            await asyncio.sleep(LOOK_S)
        return False


def _told(client: dict[str, object]) -> dict[str, object]:
    told = dict(client)
    for name, value in _UNTOLD_BEFORE.items():
        told.setdefault(name, value)
    told["blocked"] = bool(told["blocked"])
    told["durable"] = told["durable"] or None
    for name in ("input_bytes", "output_bytes"):
        told[name] = None if told[name] == -1 else told[name]
    return told
