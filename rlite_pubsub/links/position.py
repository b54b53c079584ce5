"""How far a link has brought a topic: fields of a hash beside the target's topic, written in the transaction of what
was brought there, so that it is exact after whatever happens.

    key      see `key_of`: in a cluster the hash is at the node that has the topic

    field    store id / link
    value    how u8 "same" | "own", last id, entries passed, entries lost, ids of stores: separated by blanks

    field    alike: store id / link
    value    id

    field    origin: store id / topic
    value    id

The ids of stores are of those that the entries come through: a link that goes one way and finds its target among them
would send them round. An id under "alike" stands where "same" has become "own": of the last entry that has its id from
the source, and so does not say where it comes from. The fields of origins say of each topic, wherever, whose entries
are here with ids of the target's own, which of its entries is the latest here: an entry that comes again, by another
way, is known by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from rlite_pubsub.links.target import slot_of, tag_in, tag_of

Id = tuple[int, int]
SAME, OWN = b"same", b"own"
"""Entries have the ids that they have at the source; or the target's own, because somebody else writes there, too."""
NOWHERE: Final = (0, 0)
"""Before every entry."""
ORIGIN: Final = b"link-origin"
"""The field that says where an entry with an id of the target's own comes from: store/topic/id."""
ALIKE: Final = b"alike:"
"""Before a link's field: up to where entries have the ids that they have at the source, now that others have not."""
_ORIGIN_OF: Final = b"origin:"


def parsed(text: bytes) -> Id:
    """Return an entry's id. Raises ValueError."""
    milliseconds, _, number = text.partition(b"-")
    return int(milliseconds), int(number or 0)


def spelled(found: Id) -> bytes:
    return b"%d-%d" % found


def key_of(topic: bytes) -> bytes:
    """Return the key of a topic's positions: in the topic's slot, and no other topic's."""
    tag = tag_of(topic)
    if tag != topic:
        return b"__links__:{%b}:%b" % (tag, topic)
    if not topic or b"}" in topic:
        return b"__links__:{%b}:%b" % (tag_in(slot_of(topic)), topic)
    return b"__links__:{%b}" % topic


class Position(NamedTuple):
    """Behind the last entry that was brought over."""

    way: bytes
    last: Id
    passed: int
    """Of all that were ever added to the source, with those that were removed before."""
    lost: int
    """Trimmed before they could be brought over."""

    @classmethod
    def of(cls, value: bytes) -> Position:
        """Raises ValueError."""
        way, last, passed, lost, *_ = value.split(b" ")
        return cls(way, parsed(last), int(passed), int(lost))

    def value(self, stores: Iterable[bytes]) -> bytes:
        return b" ".join((self.way, spelled(self.last), b"%d" % self.passed, b"%d" % self.lost, *sorted(stores)))


def alike_up_to(position: bytes | None, alike: bytes | None) -> Id | None:
    """Return the last entry that was brought with the id that it has at the source, by a link's two fields; None if
    there is none. Raises ValueError."""
    if alike is not None:
        return parsed(alike)
    found = None if position is None else Position.of(position)
    return found.last if found is not None and found.way == SAME else None


def stores_in(values: Iterable[bytes]) -> set[bytes]:
    """Return all stores that the entries of a topic come through."""
    return {store for value in values for store in value.split(b" ")[4:]}


class Origins:
    """Of which topics there are entries in a topic with ids of its own, and up to which."""

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        """`fields`: all of the hash. Raises ValueError."""
        self._latest = {
            field.removeprefix(_ORIGIN_OF): parsed(value)
            for field, value in fields.items()
            if field.startswith(_ORIGIN_OF)
        }
        self._changed: set[bytes] = set()

    def forget(self, origin: bytes) -> None:
        """The topic has started over."""
        self._latest.pop(origin, None)

    def pass_by(self, origin: bytes, id: Id) -> bool:
        """False: that entry is here already."""
        if id <= self._latest.get(origin, NOWHERE):
            return False
        self._latest[origin] = id
        self._changed.add(origin)
        return True

    def changes(self) -> list[bytes]:
        """Fields and values that are to be written."""
        return [word for origin in sorted(self._changed) for word in self._spelled(origin)]

    def _spelled(self, origin: bytes) -> tuple[bytes, bytes]:
        return _ORIGIN_OF + origin, spelled(self._latest[origin])


def origin_in(words: list[bytes]) -> tuple[bytes, Id] | None:
    """(store/topic, id) of an entry that says where it comes from; None: it was appended where it was read."""
    if len(words) < 4 or words[-2] != ORIGIN:
        return None
    topic, _, id = words[-1].rpartition(b"/")
    try:
        return (topic, parsed(id)) if b"/" in topic else None
    except ValueError:
        return None


class Extent(NamedTuple):
    """XINFO STREAM's facts about a topic."""

    last: Id = NOWHERE
    length: int = 0
    added: int = 0

    @property
    def removed(self) -> int:
        """From whichever place."""
        return max(0, self.added - self.length)

    @classmethod
    def of(cls, reply: Any) -> Extent:
        """Nothing, where there is no such topic. Raises what else the reply is."""
        if isinstance(reply, Exception):
            if "no such key" in str(reply):
                return cls()
            raise reply
        words: Mapping[bytes, Any] = reply
        length = int(words[b"length"])
        return cls(parsed(words[b"last-generated-id"]), length, int(words.get(b"entries-added", length)))
