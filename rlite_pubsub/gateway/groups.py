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
from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import listing
from rlite_pubsub.gateway.http.operation import Contents, Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import AFTER, COUNT, Parameter
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import (
    BYTES,
    ENTRY_ID,
    NAME,
    NUMBER,
    TEXT,
    TRUTH,
    Schema,
    array,
    maybe,
    page,
    record,
)
from rlite_pubsub.groups import claims, dead_letters, release
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
MOST_AGED = 10_000
"""Pending entries that are looked at to see how old they are."""
TOPIC_MATCH = Parameter("topic", "Only groups of topics that match this glob-style pattern.", TEXT, str, "*")
_GROUP = record(
    topic=NAME,
    name=NAME,
    lag=maybe(NUMBER),
    pending=NUMBER,
    consumers=NUMBER,
    last_delivered_id=TEXT,
    paused=TRUTH,
    topic_paused=TRUTH,
    asleep=TRUTH,
    released=NUMBER,
    delayed=NUMBER,
    requeued=NUMBER,
    timed_out=NUMBER,
    dead_lettered=NUMBER,
    dropped=NUMBER,
    timeout_ms=NUMBER,
    max_deliveries=NUMBER,
    dead_letter=maybe(NAME),
    hold=TRUTH,
)
_REQUEUE: Schema = {
    "type": "object",
    "properties": {
        "delay_ms": {"type": "integer", "minimum": 0, "maximum": MAX_MS, "default": 0},
        "ids": {**array(ENTRY_ID), "maxItems": MAX_IDS},
    },
    "additionalProperties": False,
}
_REDELIVER: Schema = {
    "type": "object",
    "required": ["ids"],
    "properties": {"ids": {**array(ENTRY_ID), "maxItems": MAX_IDS}},
    "additionalProperties": False,
}
_CONSUMER = record(name=NAME, pending=NUMBER, idle_ms=NUMBER, oldest_pending_ms=maybe(NUMBER))
_PENDING = record(id=ENTRY_ID, consumer=NAME, idle_ms=NUMBER, deliveries=NUMBER)
_DEAD_LETTER = record(
    id=ENTRY_ID, entry=ENTRY_ID, deliveries=NUMBER, fields={"type": "object", "additionalProperties": BYTES}
)
_HANDS = b"rlite-page"
"""The consumer through whose hands a dead letter goes back."""
CONSUMER = Parameter("consumer", "Only those of this consumer.", TEXT, str, "")
MIN_IDLE = Parameter(
    "min_idle_ms",
    "Only those that were delivered at least this long ago.",
    {"type": "integer", "minimum": 0, "maximum": MAX_MS, "default": 0},
    lambda word: _milliseconds(word),
    0,
)
AFTER_PENDING = Parameter(
    "after", "The `next` of the page before.", {**ENTRY_ID, "default": "0-0"}, lambda word: _after(word), entry_ids.MIN
)
_CHANGED: Contents = as_json(record(changed=TRUTH))
_CHANGED_MEANS = "`changed` is false if nothing changed."


class GroupsResource:
    """The groups of all topics of database 0."""

    def __init__(self, keyspace: Keyspace, asking: Asking, turn_soon: Callable[[], None]) -> None:
        self._keyspace = keyspace
        self._asking = asking
        self._turn_soon = turn_soon

    # -- what is known of them

    @serves(
        "GET",
        "/api/groups",
        "Groups of all topics",
        about="A page of them, sorted by topic and name. `lag` is how many entries a group has not been given yet, "
        "null if "
        "that is unknown; `pending` how many were delivered and not acknowledged, `released` how many wait for "
        "redelivery, `delayed` how many will do so later.",
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

    @serves(
        "GET",
        "/api/topics/{name}/groups/{group}/info",
        "A group and its consumers",
        about="`idle_ms` of a consumer is since it asked last, `oldest_pending_ms` for how long it has had what it "
        "was given first and has not acknowledged.",
        answers=as_json(record(**_GROUP["properties"], consumer_list=array(_CONSUMER))),
        refusals=(404, 409),
    )
    async def _info(self, request: Request) -> object:
        name, group_name = request.target.name, request.target.group
        words = b"xinfo", b"consumers", name, group_name
        consumers = plain(await self._asking.ask(request, *words))
        self._turn_soon()
        group = self._group(name, group_name)
        if group is None:
            raise Problem(404, "Not found", "There is no such group.")
        oldest = _oldest_by_consumer(group, self._keyspace.clock_ms())
        told = [
            {
                "name": each["name"],
                "pending": each["pending"],
                "idle_ms": each["idle"],
                "oldest_pending_ms": oldest.get(each["name"]),
            }
            for each in consumers
        ]
        return {**_told(group), "consumer_list": told}

    @serves(
        "GET",
        "/api/topics/{name}/groups/{group}/pending",
        "Entries that consumers have not acknowledged",
        about="A page of them, sorted by id: whose each is, for how long, and how often it was delivered.",
        parameters=(CONSUMER, MIN_IDLE, AFTER_PENDING, COUNT),
        answers=as_json(page("pending", _PENDING)),
        refusals=(404, 409),
    )
    async def _list_pending(self, request: Request) -> object:
        query, target = request.query, request.target
        consumer, idle, after, count = (
            CONSUMER.of(query), MIN_IDLE.of(query), AFTER_PENDING.of(query), COUNT.of(query)
        )  # fmt: skip
        start = b"(" + entry_ids.text(after) if after > entry_ids.MIN else b"-"
        words = [b"xpending", target.name, target.group, b"IDLE", b"%d" % idle, start, b"+", b"%d" % count]
        if consumer:
            words.append(consumer.encode())
        found = await self._asking.ask(request, *words)
        told = [
            {"id": id.decode(), "consumer": event.text_of(owner), "idle_ms": idle_ms, "deliveries": deliveries}
            for id, owner, idle_ms, deliveries in found
        ]
        return {"pending": told, "next": told[-1]["id"] if len(told) == count else None}

    # -- dead letters

    @serves(
        "GET",
        "/api/topics/{name}/groups/{group}/dead_letters",
        "Dead letters of a group",
        about="Entries that were delivered as often as the group allows, a page of them, oldest first. They are in the "
        "topic that `dead_letter` names; null: the group has none.",
        parameters=(AFTER_PENDING, COUNT),
        answers=as_json(page("dead_letters", _DEAD_LETTER, dead_letter=maybe(NAME))),
        refusals=(404, 409),
    )
    async def _dead_letters(self, request: Request) -> object:
        after, count = AFTER_PENDING.of(request.query), COUNT.of(request.query)
        grave = await self._grave(request, b"xrange", b"-", b"+")
        if grave is None:
            return {"dead_letter": None, "dead_letters": [], "next": None}
        start = b"(" + entry_ids.text(after) if after > entry_ids.MIN else b"-"
        words = b"xrange", grave, start, b"+", b"COUNT", b"%d" % MAX_IDS
        entries = await self._asking.ask(request, *words)
        found: list[dict[str, object]] = []
        for id, fields in entries:
            letter = _letter(id, fields, request.target.name, request.target.group)
            if letter is not None and len(found) < count:
                found.append(letter)
        is_whole = len(entries) < MAX_IDS and len(found) < count
        last = found[-1]["id"] if len(found) == count else entries[-1][0].decode() if entries else None
        return {"dead_letter": event.text_of(grave), "dead_letters": found, "next": None if is_whole else last}

    @serves(
        "POST",
        "/api/topics/{name}/groups/{group}/redeliver",
        "Give dead letters back to their group",
        about="`ids` are those of the dead letters. Each is delivered again, as if for the first time, and is "
        "removed from "
        "the topic of dead letters. `gone` counts those whose entry the topic does not have any more: they stay dead "
        "letters. Takes the right to remove from that topic as well.",
        body=as_json(_REDELIVER),
        needs_body=True,
        answers=as_json(record(redelivered=NUMBER, gone=NUMBER)),
        refusals=(404, 409, 413, 507),
    )
    async def _redeliver(self, request: Request) -> object:
        ids, _ = _said(await request.body(), {"ids"})
        grave = await self._grave(request, b"xdel", b"0-1")
        if ids is None:
            raise Problem(400, "Bad request", "The body is a JSON object with `ids`.")
        if grave is None:
            raise Problem(409, "No dead letters", "The group has no topic for dead letters (TOPIC.GROUP DEADLETTER).")
        topic, group = request.target.name, request.target.group
        redelivered = gone = 0
        for letter_id in ids:
            id = entry_ids.text(letter_id)
            entries = await self._asking.ask(request, b"xrange", grave, id, id)
            letter = _letter(id, entries[0][1], topic, group) if entries else None
            if letter is None:
                continue
            origin = str(letter["entry"]).encode()
            claimed, requeued, _ = await self._asking.ask_all(
                request,
                [
                    (b"xclaim", topic, group, _HANDS, b"0", origin, b"RETRYCOUNT", b"0", b"FORCE", b"JUSTID"),
                    (b"topic.requeue", topic, group, origin),
                    (b"xgroup", b"DELCONSUMER", topic, group, _HANDS),
                ],
            )
            if claimed and requeued:  # a crash from here on delivers it twice, and loses nothing
                redelivered += await self._asking.ask(request, b"xdel", grave, id)
            else:
                gone += 1
        return {"redelivered": redelivered, "gone": gone}

    async def _grave(self, request: Request, *words: bytes) -> bytes | None:
        """Return the topic for the group's dead letters, with which the caller may do this; None: there is none. Raises
        Problem."""
        topic, name = request.target.name, request.target.group
        await self._asking.ask(request, b"topic.group", topic, name)  # which says that there is none
        group = self._group(topic, name)
        grave = group.settings.dead_letter if group is not None else b""
        if grave and not request.scope["caller"].may(words[0], grave, *words[1:]):
            raise Problem(403, "Forbidden", f"The topic of dead letters, {event.text_of(grave)}, may not be used.")
        return grave or None

    # -- pausing

    @serves(
        "POST",
        "/api/topics/{name}/pause",
        "Pause all groups of a topic",
        about=f"Publishing goes on. {_CHANGED_MEANS}",
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _pause_topic(self, request: Request) -> object:
        return await self._change(request, b"topic.pause", request.target.name)

    @serves(
        "POST",
        "/api/topics/{name}/resume",
        "Resume the groups of a topic",
        about=_CHANGED_MEANS,
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _resume_topic(self, request: Request) -> object:
        return await self._change(request, b"topic.resume", request.target.name)

    @serves(
        "POST",
        "/api/topics/{name}/groups/{group}/pause",
        "Pause a group",
        about=_CHANGED_MEANS,
        answers=_CHANGED,
        refusals=(404, 409, 507),
    )
    async def _pause(self, request: Request) -> object:
        return await self._change(request, b"topic.pause", request.target.name, request.target.group)

    @serves(
        "POST",
        "/api/topics/{name}/groups/{group}/resume",
        "Resume a group",
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
        "Return pending entries to their group",
        about="They are delivered again, at once or after `delay_ms`, to whichever consumer reads next. Without "
        "`ids` these are all "
        "that are pending at the time of the request; ids that are not pending are ignored. Entries that were "
        "acknowledged, and dead letters, are not pending.",
        body=as_json(_REQUEUE),
        answers=as_json(record(requeued=NUMBER)),
        refusals=(404, 409, 413, 507),
    )
    async def _requeue(self, request: Request) -> object:
        ids, delay = _said(await request.body(), {"delay_ms", "ids"})
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
    """Return the name for `after`, which joins any two names."""
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
        "last_delivered_id": entry_ids.text(group.last_id).decode(),
        "paused": settings.is_paused,
        "topic_paused": group.topic.is_paused,
        "asleep": settings.is_asleep,
        "released": settings.released - delayed,
        "delayed": delayed,
        "requeued": settings.requeued,
        "timed_out": settings.timed_out,
        "dead_lettered": settings.dead_lettered,
        "dropped": settings.dropped,
        "timeout_ms": settings.timeout_ms,
        "max_deliveries": settings.max_deliveries,
        "dead_letter": event.text_of(settings.dead_letter) if settings.dead_letter else None,
        "hold": settings.holds,
    }


def _said(body: bytes, fields: set[str]) -> tuple[list[Id] | None, tuple[bytes, ...]]:
    """Return the ids (None: all), and the words of a delay. Raises Problem."""
    said = entry.loaded(body, "The body") if body.strip() else {}
    if not isinstance(said, dict) or said.keys() - fields:
        known = " and ".join(f"`{name}`" for name in sorted(fields))
        raise Problem(400, "Bad request", f"The body is a JSON object with {known}.")
    delay_ms, ids = said.get("delay_ms", 0), said.get("ids")
    if isinstance(delay_ms, float) and delay_ms.is_integer():
        delay_ms = int(delay_ms)
    if type(delay_ms) is not int or not 0 <= delay_ms <= MAX_MS:
        raise Problem(400, "Bad delay", "delay_ms is a number of milliseconds up to 2^48.")
    delay = (b"DELAY", b"%d" % delay_ms) if delay_ms else ()
    if "ids" not in said:
        return None, delay
    if not isinstance(ids, list) or len(ids) > MAX_IDS:
        raise Problem(400, "Bad ids", f"ids is an array of at most {MAX_IDS} ids.")
    return [found for found in map(_id, ids) if found is not None], delay


def _milliseconds(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 15 and int(word) <= MAX_MS):
        raise ValueError("min_idle_ms is a number of milliseconds up to 2^48.")
    return int(word)


def _after(word: str) -> Id:
    if not entry.IS_ID.fullmatch(word):
        raise ValueError("An id is `ms-seq`.")
    ms, seq = map(int, word.split("-"))
    return min((ms, seq), entry_ids.MAX)


def _oldest_by_consumer(group: Group, now_ms: int) -> dict[str, int]:
    """Return how long each consumer has had its oldest unacknowledged entry."""
    oldest: dict[int, int] = {}
    for _, (number, delivered_ms, _) in islice(claims.walk(group), MOST_AGED):
        oldest[number] = min(delivered_ms, oldest.get(number, delivered_ms))
    return {event.text_of(group.numbered(number).name): max(0, now_ms - ms) for number, ms in oldest.items()}


def _letter(id: bytes, words: list[bytes], topic: bytes, group: bytes) -> dict[str, object] | None:
    """Return a dead letter as JSON; None: it is another group's."""
    fields = dict(zip(words[::2], words[1::2], strict=True))
    whence, whose, entry_id, deliveries, delivered_ms = (fields.pop(name, b"") for name in dead_letters.FIELDS)
    if (whence, whose) != (topic, group) or not entry.IS_ID.fullmatch(entry_id.decode(errors="replace")):
        return None
    return {
        "id": id.decode(),
        "entry": entry_id.decode(),
        "deliveries": int(deliveries) if deliveries.isdigit() else 0,
        "delivered_ms": int(delivered_ms) if delivered_ms.isdigit() and int(delivered_ms) else None,
        "fields": {event.text_of(name): event.value_of(value) for name, value in fields.items()},
    }


def _id(word: object) -> Id | None:
    """Return the id; None if it is beyond every possible id. Raises Problem."""
    if not isinstance(word, str) or not entry.IS_ID.fullmatch(word):
        raise Problem(400, "Bad ids", f"An id is `ms-seq`: {json.dumps(word)[:80]}.")
    ms, seq = map(int, word.split("-"))
    return (ms, seq) if max(ms, seq) <= entry_ids.PART_MAX else None
