"""`doctor --deep`: every record is read, and what refers to something finds it. What others change meanwhile may be
told as a fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from struct import error as StructError
from typing import Any

import rlite_pubsub
from rlite_pubsub.embedded.host import Host
from rlite_pubsub.engine.functions.library import FunctionError, read_metadata
from rlite_pubsub.engine.payloads import payload_of
from rlite_pubsub.keyspace.topic import topic
from rlite_pubsub.storage.cold import cold_blocks, cold_home
from rlite_pubsub.storage.cold import proof as cold_proof
from rlite_pubsub.storage.commons import function_libraries
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.groups import proof as group_proof
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.keys import proof as key_proof
from rlite_pubsub.storage.keys.proof import Owner
from rlite_pubsub.storage.mail import proof as mail_proof
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics import proof as topic_proof
from rlite_pubsub.storage.topics.proof import TopicHead


def faults(store: Store, folder: str) -> Iterator[str]:
    """Yield what is wrong with the store, one line each."""
    for environment, are_durable in ((store.live, False), (store.data, True)):
        for fault in environment.read(lambda txn: list(mail_proof.faults(txn, are_durable=are_durable))):  # noqa: B023
            yield f"{environment.path.name}: {fault}"
    for fault in store.data.read(lambda txn: list(_of_data(txn))):
        yield f"{store.data.path.name}: {fault}"
    yield from _of_blocks(store)
    yield from _of_libraries(store)
    for database, space in sorted(store.data.read(key_records.spaces).items()):
        if space.size:
            yield from _of_keys(folder, database)


def _of_data(txn: Txn) -> Iterator[str]:
    """Yield the faults of the data at one moment."""
    try:
        yield from key_proof.faults(txn)
        topics = _topics(txn)
        for look in (topic_proof.faults, group_proof.faults, cold_proof.faults):
            yield from look(txn, topics)
    except (StructError, ValueError, LookupError, AssertionError) as failure:
        yield f"a record can't be read, and what follows it was not checked: {failure!r}"


def _topics(txn: Txn) -> dict[int, TopicHead]:
    """Return all that somebody can reach."""
    spaces = {space.number for space in key_records.spaces(txn).values()}
    return {
        number: _head_of(owner)
        for number, owner in key_proof.owners(txn)
        if owner.record.type == key_records.TOPIC and key_records.space_of(owner.place) in spaces
    }


def _head_of(owner: Owner) -> TopicHead:
    place, stored = owner
    body = topic._BODY.unpack_from(stored.body)  # private: nobody else but a topic should know what its record has
    last_id, trimmed_id = (body[3], body[4]), (body[11], body[12])
    has_cold = bool(stored.flags & topic.COLD_FLAG)
    has_segments = bool(stored.flags & topic.SEGMENTS_FLAG)
    counts = body[1], body[2], last_id, body[8], body[9], body[10], trimmed_id
    return TopicHead(place, stored.name, *counts, has_cold, has_segments)


def _of_blocks(store: Store) -> Iterator[str]:
    """Every block that a topic has is there, whole, and in a whole manifest. A block that no topic has may be beside
    none: its writer was killed."""
    home = store.data.read(cold_home.get)
    if home is None:
        return
    topics = store.data.read(_topics)
    blocks = {
        block.path: block
        for number in topics
        for block in store.data.read(lambda txn: list(cold_blocks.forward(txn, number)))  # noqa: B023
    }
    if not blocks:
        return
    from rlite_pubsub.cold import block
    from rlite_pubsub.cold.errors import ColdError
    from rlite_pubsub.cold.places import open_place
    from rlite_pubsub.cold.survey import beside, survey

    try:
        place = open_place(home.url, store.folder)
        found = survey(place)
        needed = set(map(beside, blocks))
        yield from (f"cold store: {damaged}" for damaged in found.damaged if damaged.path in needed)
        mirrored: dict[str, Any] = {known.path: known for each in found.manifests for known in each.blocks}
        for path, known in blocks.items():
            if mirrored.get(path) != replace(known, groups=()):
                yield f"cold store: {path} is in no manifest as the store has it"
            try:
                block.verify(place, known)
            except ColdError as failure:
                yield f"cold store: {failure}"
    except ColdError as failure:
        yield f"cold store: {failure}"


def _of_libraries(store: Store) -> Iterator[str]:
    """Each library of functions stands where its name says."""
    codes = store.data.read(function_libraries.codes)
    try:
        names = [read_metadata(code).name for code in codes]
    except FunctionError as failure:
        yield f"a library of functions: {failure}"
        return
    for name in store.data.read(lambda txn: function_libraries.misplaced(txn, names)):
        yield f"library of functions {name!r} is stored under another name"


def _of_keys(folder: str, database: int) -> Iterator[str]:
    """A dump has all that a key holds, of whatever type: so all of it is read and understood. A member of a sharded
    store may have keys that it serves no longer, or not yet, because it was killed while they moved: they are read like
    all others."""
    with rlite_pubsub.Redis(folder, db=database) as client, closing(Host.open(folder)) as host:
        session = host.begin_session()
        keyspace = session.engine.keyspace
        failures: list[Exception] = []

        def dump(key: bytes) -> None:
            try:
                record = keyspace.find(database, key)
                if record is not None:
                    payload_of(record)
            except Exception as failure:  # whatever it meets is what the key's fault shows
                failures.append(failure)

        try:
            for key in client.scan_iter(count=1000):
                host.turn(partial(dump, key))
                while failures:
                    yield f"key {key!r} of database {database}: {failures.pop()}"
        finally:
            host.end_session(session)
