"""Subscribers over HTTP: what SUBSCRIBER.LIST tells of servers, programs and durable subscribers of the store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.http.operation import Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import AFTER, COUNT
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, TEXT, TRUTH, array, maybe, page, record
from rlite_pubsub.protocol.replies import Reply

_TRUTHS = ("alive", "attached", "expired")
_SUBSCRIBER = record(
    id=TEXT,
    kind={"type": "string", "enum": ["server", "embedded", "durable"]},
    name=maybe(NAME),
    pid=NUMBER,
    state={"type": "string", "enum": ["alive", "dead", "unknown", "away"]},
    alive=TRUTH,
    names=NUMBER,
    channelCount=NUMBER,
    patternCount=NUMBER,
    shardCount=NUMBER,
    channels=array(NAME),
    patterns=array(NAME),
    shards=array(NAME),
    backlogMessages=NUMBER,
    backlogBytes=NUMBER,
    oldestAgeMs=NUMBER,
    lastBellAgeMs=maybe(NUMBER),
)


class Subscribers:
    """Those of the store."""

    def __init__(self, asking: Asking, now_ms: Callable[[], int]) -> None:
        self._asking = asking
        self._now_ms = now_ms

    @serves(
        "GET",
        "/api/subscribers",
        "Subscribers of the store",
        about="A page of the servers, programs and durable subscribers that share it, sorted by id: what they hold (at "
        "most 100 names of each kind), what waits for them, and for how long the oldest of that has waited (0: nothing "
        "waits, -1: not known). `lastBellAgeMs` is null where there is no bell. Of durable ones also what they were "
        "promised, and what was taken from them.",
        parameters=(AFTER, COUNT),
        answers=as_json(page("subscribers", _SUBSCRIBER)),
    )
    async def _list(self, request: Request) -> object:
        after, count = AFTER.of(request.query), COUNT.of(request.query)
        found = [_told(each, self._now_ms()) for each in await self._asking.ask(b"subscriber.list")]
        found.sort(key=_id)
        start = bisect_right(found, after, key=_id) if after else 0
        following = found[start : start + count]
        is_all = start + count >= len(found)
        return {"subscribers": following, "next": None if is_all else _id(following[-1])}


def _id(told: dict[str, object]) -> str:
    return str(told["id"])


def _told(entry: Reply, now_ms: int) -> dict[str, object]:
    fields = plain(entry)
    assert isinstance(fields, dict)
    told = {_camel(field): value for field, value in fields.items()}
    last_bell_ms = told.pop("lastBellMs")
    told["lastBellAgeMs"] = max(0, now_ms - last_bell_ms) if last_bell_ms else None
    told["name"] = told.get("name")
    for field in _TRUTHS:
        if field in told:
            told[field] = bool(told[field])
    return told


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(map(str.capitalize, rest))
