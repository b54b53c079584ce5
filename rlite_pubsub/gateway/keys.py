"""Keys over HTTP: which there are, of which types, until when, and what is in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlite_pubsub.gateway.asking import Asking, plain
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http.operation import Request, as_json, serves
from rlite_pubsub.gateway.http.parameter import COUNT, MATCH, Parameter
from rlite_pubsub.gateway.http.request import Problem
from rlite_pubsub.gateway.http.schema import NAME, NUMBER, TEXT, maybe, page, record

if TYPE_CHECKING:
    from rlite_pubsub.protocol.replies import Reply

MOST_SCANS = 20
"""In one request: where few keys match, a page may have fewer than were asked for."""
SCANNED_AT_ONCE = 500
STRING_BYTES = 64 << 10
"""Of a string, in a page."""
_SIZES = {
    b"string": b"strlen",
    b"list": b"llen",
    b"set": b"scard",
    b"zset": b"zcard",
    b"hash": b"hlen",
    b"stream": b"xlen",
}
TYPES = [name.decode() for name in _SIZES]


MOST_DB_DIGITS = 9


def _database(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= MOST_DB_DIGITS):
        raise ValueError("db is the number of a database.")
    return int(word)


def _cursor(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 20):
        raise ValueError("after is the `next` of the page before.")
    return int(word)


def _type(word: str) -> str:
    if word not in TYPES:
        raise ValueError(f"type is one of {', '.join(TYPES)}.")
    return word


DB = Parameter(
    "db",
    "The database, as SELECT has it.",
    {"type": "integer", "minimum": 0, "maximum": 10**MOST_DB_DIGITS - 1, "default": 0},
    _database,
    0,
)
AFTER_KEY = Parameter(
    "after", "The `next` of the page before.", {"type": "string", "pattern": "^[0-9]{1,20}$"}, _cursor, 0
)
TYPE = Parameter("type", "Only keys of this type.", {"type": "string", "enum": TYPES}, _type, "")
_KEY = {
    "name": NAME,
    "type": TEXT,
    "ttl_ms": maybe(NUMBER),
    "size": NUMBER,
}
_ELEMENT = {"type": "object", "description": "`value`; of a hash also `field`, of a sorted set also `score`."}


class KeysResource:
    """The keys of one store."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    @serves(
        "GET",
        "/api/keys",
        "Keys",
        about="Some keys of a database, in no order: as with SCAN, a page may have more or fewer than `count`, and a "
        "key that "
        "is there all the time is in one of them. `size` is the length of a string, otherwise how many elements there "
        "are; `ttl_ms` is null where the key does not expire. `keys_in_all` is how many the database has.",
        parameters=(MATCH, TYPE, DB, AFTER_KEY, COUNT),
        answers=as_json(page("keys", record(**_KEY), keys_in_all=NUMBER)),
        refusals=(404,),
    )
    async def _list(self, request: Request) -> object:
        query = request.query
        db, cursor, count, kind = DB.of(query), AFTER_KEY.of(query), COUNT.of(query), TYPE.of(query)
        options = [b"MATCH", MATCH.of(query).encode(), b"COUNT", b"%d" % max(count, SCANNED_AT_ONCE)]
        options += [b"TYPE", kind.encode()] if kind else []
        names: list[bytes] = []
        for _ in range(MOST_SCANS):
            _, reply = await self._in(request, db, (b"scan", b"%d" % cursor, *options))
            cursor, found = int(reply[0]), reply[1]
            names += found
            if not cursor or len(names) >= count:
                break
        return {
            "keys": await self._seen(request, db, names),
            "keys_in_all": (await self._in(request, db, (b"dbsize",)))[1],
            "next": str(cursor) if cursor else None,
        }

    async def _seen(self, request: Request, db: int, names: list[bytes]) -> list[dict[str, object]]:
        """Return the description of each key that still exists."""
        types = (await self._in(request, db, *[(b"type", name) for name in names]))[1:]
        there = [(name, type) for name, type in zip(names, types, strict=True) if type in _SIZES]
        words = [part for name, type in there for part in ((b"pttl", name), (_SIZES[type], name))]
        replies = (await self._in(request, db, *words, refuses=False))[1:]
        seen = []
        for (name, type), ttl_ms, size in zip(there, replies[::2], replies[1::2], strict=True):
            if isinstance(size, int):
                seen.append(_about(name, type, ttl_ms, size))
        return seen

    @serves(
        "GET",
        "/api/keys/{name}",
        "A key and what is in it",
        about="A page of its elements; of a string the bytes from `after` on (64 kB at most). What is in a stream "
        "`/api/topics/{name}` shows.",
        parameters=(DB, AFTER_KEY, COUNT),
        answers=as_json(page("elements", _ELEMENT, **_KEY)),
        refusals=(404,),
    )
    async def _show(self, request: Request) -> object:
        query, name = request.query, request.target.name
        db, after, count = DB.of(query), AFTER_KEY.of(query), COUNT.of(query)
        found = await self._seen(request, db, [name])
        if not found:
            raise Problem(404, "Not found", "There is no such key.")
        about = found[0]
        elements, following = await self._elements(request, db, name, str(about["type"]), after, count)
        return {**about, "elements": elements, "next": following}

    async def _elements(
        self, request: Request, db: int, name: bytes, type: str, after: int, count: int
    ) -> tuple[list[dict[str, object]], str | None]:
        first, last, many = b"%d" % after, b"%d" % (after + count - 1), b"%d" % count
        if type == "string":
            end = after + STRING_BYTES
            _, value = await self._in(request, db, (b"getrange", name, first, b"%d" % (end - 1)))
            return [{"value": event.value_of(value)}], str(end) if len(value) == STRING_BYTES else None
        if type == "list":
            _, values = await self._in(request, db, (b"lrange", name, first, last))
            return [{"value": event.value_of(value)} for value in values], _behind(after, values, count)
        if type == "zset":
            _, pairs = await self._in(request, db, (b"zrange", name, first, last, b"WITHSCORES"))
            told = [{"value": event.value_of(value), "score": score} for value, score in pairs]
            return [{**each, "score": _finite(each["score"])} for each in told], _behind(after, pairs, count)
        if type == "set":
            _, (cursor, values) = await self._in(request, db, (b"sscan", name, first, b"COUNT", many))
            return [{"value": event.value_of(value)} for value in values], _next(cursor)
        if type == "hash":
            _, (cursor, words) = await self._in(request, db, (b"hscan", name, first, b"COUNT", many))
            fields = zip(words[::2], words[1::2], strict=True)
            return [{"field": event.text_of(k), "value": event.value_of(v)} for k, v in fields], _next(cursor)
        return [], None

    async def _in(self, request: Request, db: int, *commands: tuple[bytes, ...], refuses: bool = True) -> list[Any]:
        """Replies to SELECT and to these, in a database. Raises Problem."""
        every = [(b"select", b"%d" % db), *commands]
        if refuses:
            return await self._asking.ask_all(request, every)
        return await self._asking.ask_each(request, every)


def _about(name: bytes, type: bytes, ttl_ms: Reply, size: int) -> dict[str, object]:
    expires = isinstance(ttl_ms, int) and ttl_ms >= 0
    return {
        "name": event.text_of(name),
        "type": plain(type, is_name=True),
        "ttl_ms": ttl_ms if expires else None,
        "size": size,
    }


def _behind(after: int, found: list[Any], count: int) -> str | None:
    return str(after + count) if len(found) == count else None


def _next(cursor: bytes) -> str | None:
    return None if cursor == b"0" else cursor.decode()


def _finite(score: object) -> object:
    """JSON has no infinity."""
    return score if isinstance(score, float) and abs(score) != float("inf") else str(score)
