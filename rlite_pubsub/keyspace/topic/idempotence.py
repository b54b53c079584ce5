"""XADD's IDMP and IDMPAUTO (Redis 8.6): what a producer publishes again, because it never heard that it was published,
is not added again.

A publication is known for this many seconds, and this many of each producer are (XCFGSET). The topic comes from
`Keyspace.for_change`, and what is noted is committed with the entry itself (law 5): a producer that was given an id is
given the
same id again, whatever happens to the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.storage.topics import publications
from rlite_pubsub.storage.topics.publications import Known, PublicationState

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.topics.entry_ids import Id

_FORGOTTEN_AT_ONCE = 3
"""Each new publication takes this many with it that are too old: there are ever fewer of these."""


class Once(NamedTuple):
    """A publication that XADD adds only once."""

    producer: bytes
    publication: bytes
    """Digests."""


def once(producer: bytes, publication: bytes | None, words: tuple[bytes, ...]) -> Once:
    """Return a producer's publication of a name; without one, what it consists of is its name."""
    name = publications.digest_of_fields(words) if publication is None else publications.digest(publication)
    return Once(publications.digest(producer), name)


def known_id(topic: Topic, wanted: Once) -> Id | None:
    """Return the entry that was added for it; None: there is none, or that is too long ago."""
    txn = topic.keyspace.writing()
    state = publications.state(txn, topic.number)
    known = publications.find(txn, topic.number, *wanted) if state is not None else None
    if state is None or known is None:
        return None
    if _is_over(topic, state, known):
        publications.put_state(txn, topic.number, _without(topic, state, known))
        return None
    publications.put_state(txn, topic.number, state._replace(duplicates=state.duplicates + 1))
    topic.keyspace.keep(topic)
    return known.entry_id


def note(topic: Topic, wanted: Once, entry_id: Id) -> None:
    """It was added just now."""
    txn = topic.keyspace.writing()
    number = topic.number
    state = publications.state(txn, number) or PublicationState()
    for _ in range(_FORGOTTEN_AT_ONCE):
        oldest = publications.oldest(txn, number)
        if oldest is None or not _is_over(topic, state, oldest):
            break
        state = _without(topic, state, oldest)
    if publications.count_of(txn, number, wanted.producer) >= state.most:
        first = publications.oldest_of(txn, number, wanted.producer)
        assert first is not None
        state = _without(topic, state, first)
    is_new = not publications.count_of(txn, number, wanted.producer)
    publications.add(txn, number, Known(*wanted, state.next_serial, entry_id, topic.keyspace.clock_ms()))
    state = state._replace(
        added=state.added + 1,
        producers=state.producers + is_new,
        known=state.known + 1,
        next_serial=state.next_serial + 1,
    )
    publications.put_state(txn, number, state)


def configure(topic: Topic, seconds: int | None, most: int | None) -> None:
    """Set how long, and how many, publications of each producer are known; None leaves a value as it is. A change
    forgets all of them."""
    txn = topic.keyspace.writing()
    before = publications.state(txn, topic.number) or PublicationState()
    after = before._replace(
        seconds=before.seconds if seconds is None else seconds, most=before.most if most is None else most
    )
    if after != before:
        publications.remove_all(txn, topic.number)
        after = after._replace(producers=0, known=0)
    publications.put_state(txn, topic.number, after)
    topic.keyspace.keep(topic)


def told(topic: Topic) -> PublicationState | None:
    """Return what is known, in numbers; None if this topic never used it."""
    return publications.state(topic.keyspace.reading(), topic.number)


def _is_over(topic: Topic, state: PublicationState, known: Known) -> bool:
    return known.noted_ms + state.seconds * 1000 <= topic.keyspace.clock_ms()


def _without(topic: Topic, state: PublicationState, known: Known) -> PublicationState:
    txn = topic.keyspace.writing()
    publications.remove(txn, topic.number, known)
    is_last = not publications.count_of(txn, topic.number, known.producer)
    return state._replace(producers=state.producers - is_last, known=state.known - 1)
