"""Groups over HTTP: how far each is, and the hand that stops them, starts them, and gives back what is in flight.

What is many is done a little at a time, so that everybody else has their turns in between.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes, unquote_to_bytes

from rlite_pubsub.gateway import entry
from rlite_pubsub.gateway.asking import Asking
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import listing
from rlite_pubsub.gateway.http.operation import Contents, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import AFTER, COUNT, Parameter
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import ENTRY_ID, NAME, NUMBER, TEXT, TRUTH, Schema, array, maybe, page, record
from rlite_pubsub.groups import claims, release
from rlite_pubsub.groups.group import Group, all_groups, group_of
from rlite_pubsub.groups.release import MAX_MS
from rlite_pubsub.keyspace.topic.cold_shelf import if_here
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.keyspace.keyspace import Keyspace

MAX_IDS = 1000
"""In one request."""
TOPICS_AT_ONCE = 200
REQUEUED_AT_ONCE = 200
TOPIC_MATCH = Parameter("topic", "Only of topics that match this pattern, as PSUBSCRIBE has it.", TEXT, str, "*")
_GROUP = record(
    topic=NAME,
    name=NAME,
    lag=maybe(NUMBER),
    pending=NUMBER,
    consumers=NUMBER,
    lastDeliveredId=TEXT,
    paused=TRUTH,
    topicPaused=TRUTH,
    asleep=TRUTH,
    released=NUMBER,
    delayed=NUMBER,
    requeued=NUMBER,
    timedOut=NUMBER,
    deadLettered=NUMBER,
    dropped=NUMBER,
    timeoutMs=NUMBER,
    maxDeliveries=NUMBER,
    deadLetter=maybe(NAME),
    hold=TRUTH,
)
_REQUEUE: Schema = {
    "type": "object",
    "properties": {
        "delayMs": {"type": "integer", "minimum": 0, "maximum": MAX_MS, "default": 0},
        "ids": {**array(ENTRY_ID), "maxItems": MAX_IDS},
    },
    "additionalProperties": False,
}
_CHANGED: Contents = as_json(record(changed=TRUTH))
_CHANGED_MEANS = "`changed` is false where it was so already."


class GroupsResource:
    """Those of all topics of database 0."""

    def __init__(self, keyspace: Keyspace, asking: Asking, turn_soon: Callable[[], None]) -> None:
        self._keyspace = keyspace
        self._asking = asking
        self._turn_soon = turn_soon

    # -- what is known of them

    @serves(
        "GET",
        "/api/groups",
        "Groups of all topics",
        about="A page of them, sorted by topic and name. `lag` is what a group has not been given yet, null where "
        "nobody knows; `pending` what is in flight, `released` what was given back and waits to be delivered again, "
        "`delayed` what will do so later.",
        parameters=(TOPIC_MATCH, AFTER, COUNT),
        answers=as_json(page("groups", _GROUP)),
    )
    async def _list(self, request: Request) -> object:
        query = request.query
        match, after, count = TOPIC_MATCH.of(query), AFTER.of(query), COUNT.of(query)
        first_topic, first_group = _place(after)
        names = await self._asking.ask(request, b"topic.list")
        wanted = iter([name for name in listing.matching(names, match) if name >= first_topic])
        found: list[tuple[str, dict[str, object]]] = []
        while len(found) <= count:
            some = list(islice(wanted, TOPICS_AT_ONCE))
            if not some:
                break
            self._turn_soon()
            for name in some:
                groups = [group for group in self._of(name) if (name, group.name) > (first_topic, first_group)]
                found += [(_name(group), _told(group)) for group in groups[: count + 1 - len(found)]]
                if len(found) > count:
                    break
            await asyncio.sleep(0)
        following = found[count - 1][0] if len(found) > count else None
        return {"groups": [told for _, told in found[:count]], "next": following}

    def _of(self, name: bytes) -> list[Group]:
        topic = self._keyspace.find(event.DATABASE, name)
        return all_groups(topic) if isinstance(topic, Topic) else []

    # -- pausing

    @serves(
        "POST",
        "/api/topics/{name}/pause",
        "Give nothing new to any group of a topic",
        about=f"Publishing goes on. {_CHANGED_MEANS}",
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _pause_topic(self, request: Request) -> object:
        return await self._change(request, b"topic.pause", request.target.name)

    @serves(
        "POST",
        "/api/topics/{name}/resume",
        "Go on giving entries to the groups of a topic",
        about=_CHANGED_MEANS,
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _resume_topic(self, request: Request) -> object:
        return await self._change(request, b"topic.resume", request.target.name)

    @serves(
        "POST",
        "/api/topics/{name}/groups/{group}/pause",
        "Give nothing new to a group",
        about=_CHANGED_MEANS,
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _pause(self, request: Request) -> object:
        return await self._change(request, b"topic.pause", request.target.name, request.target.group)

    @serves(
        "POST",
        "/api/topics/{name}/groups/{group}/resume",
        "Go on giving entries to a group",
        about=_CHANGED_MEANS,
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _resume(self, request: Request) -> object:
        return await self._change(request, b"topic.resume", request.target.name, request.target.group)

    async def _change(self, request: Request, *words: bytes) -> object:
        return {"changed": bool(await self._asking.ask(request, *words))}

    # -- requeueing

    @serves(
        "POST",
        "/api/topics/{name}/groups/{group}/requeue",
        "Give entries in flight back to their group",
        about="They are delivered again, at once or after `delayMs`, to whoever asks next. Without `ids` it is all "
        "that is in flight when this is asked; ids that are not are passed over. What was acknowledged, or is a dead "
        "letter, is not in flight.",
        body=as_json(_REQUEUE),
        answers=as_json(record(requeued=NUMBER)),
        refusals=(404, 409, 413, 507),
    )
    async def _requeue(self, request: Request) -> object:
        ids, delay = _said(await request.body())
        of_group = request.target.name, request.target.group
        await self._asking.ask(request, b"topic.group", *of_group)  # which says that there is none
        count = 0
        if ids is not None:
            for start in range(0, len(ids), REQUEUED_AT_ONCE):
                count += await self._give_back(request, ids[start : start + REQUEUED_AT_ONCE], delay, *of_group)
            return {"requeued": count}
        after, end = entry_ids.MIN, self._last_given(*of_group)
        while some := self._in_flight(after, end, *of_group):
            count += await self._give_back(request, some, delay, *of_group)
            after = some[-1]
        return {"requeued": count}

    async def _give_back(
        self, request: Request, ids: list[Id], delay: tuple[bytes, ...], topic: bytes, group: bytes
    ) -> int:
        requests = [(b"topic.requeue", topic, group, entry_ids.text(each), *delay) for each in ids]
        return sum(await self._asking.ask_all(request, requests))

    def _group(self, topic_name: bytes, name: bytes) -> Group | None:
        topic = self._keyspace.find(event.DATABASE, topic_name)
        return group_of(topic, name) if isinstance(topic, Topic) else None

    def _last_given(self, topic: bytes, group: bytes) -> Id:
        self._turn_soon()
        found = self._group(topic, group)
        return entry_ids.MIN if found is None else found.last_id

    def _in_flight(self, after: Id, end: Id, topic: bytes, name: bytes) -> list[Id]:
        self._turn_soon()
        group = self._group(topic, name)
        start = entry_ids.after(after)
        if group is None or start is None or start > end:
            return []
        pending: Iterator[tuple[bytes, object]] = claims.walk(group, start, end)
        return [entry_ids.unpack(packed) for packed, _ in islice(pending, REQUEUED_AT_ONCE)]


def _place(after: str) -> tuple[bytes, bytes]:
    topic, _, group = after.partition("/")
    return unquote_to_bytes(topic), unquote_to_bytes(group)


def _name(group: Group) -> str:
    """What `after` has, which has to be any two names at once."""
    return f"{quote_from_bytes(group.topic.name, safe='')}/{quote_from_bytes(group.name, safe='')}"


def _told(group: Group) -> dict[str, object]:
    settings = group.settings
    delayed = release.delayed_count(group)
    return {
        "topic": event.text_of(group.topic.name),
        "name": event.text_of(group.name),
        "lag": if_here(group.topic.keyspace.cold.shelf, lambda: group.lag),
        "pending": group.pending_count,
        "consumers": group.consumer_count,
        "lastDeliveredId": entry_ids.text(group.last_id).decode(),
        "paused": settings.is_paused,
        "topicPaused": group.topic.is_paused,
        "asleep": settings.is_asleep,
        "released": settings.released - delayed,
        "delayed": delayed,
        "requeued": settings.requeued,
        "timedOut": settings.timed_out,
        "deadLettered": settings.dead_lettered,
        "dropped": settings.dropped,
        "timeoutMs": settings.timeout_ms,
        "maxDeliveries": settings.max_deliveries,
        "deadLetter": event.text_of(settings.dead_letter) if settings.dead_letter else None,
        "hold": settings.holds,
    }


def _said(body: bytes) -> tuple[list[Id] | None, tuple[bytes, ...]]:
    """The ids (None: all), and the words of a delay. Raises Problem."""
    said = entry.loaded(body, "The body") if body.strip() else {}
    if not isinstance(said, dict) or said.keys() - {"delayMs", "ids"}:
        raise Problem(400, "Bad request", "The body is a JSON object of `delayMs` and `ids`, both optional.")
    delay_ms, ids = said.get("delayMs", 0), said.get("ids")
    if isinstance(delay_ms, float) and delay_ms.is_integer():
        delay_ms = int(delay_ms)
    if type(delay_ms) is not int or not 0 <= delay_ms <= MAX_MS:
        raise Problem(400, "Bad delay", "delayMs is a number of milliseconds up to 2^48.")
    delay = (b"DELAY", b"%d" % delay_ms) if delay_ms else ()
    if "ids" not in said:
        return None, delay
    if not isinstance(ids, list) or len(ids) > MAX_IDS:
        raise Problem(400, "Bad ids", f"ids is an array of at most {MAX_IDS} ids.")
    return [found for found in map(_id, ids) if found is not None], delay


def _id(word: object) -> Id | None:
    """None: it is beyond all that there can be. Raises Problem."""
    if not isinstance(word, str) or not entry.IS_ID.fullmatch(word):
        raise Problem(400, "Bad ids", f"An id is `ms-seq`: {json.dumps(word)[:80]}.")
    ms, seq = map(int, word.split("-"))
    return (ms, seq) if max(ms, seq) <= entry_ids.PART_MAX else None
