"""Fields of large hashes: where they stand, and in the order of their expiries."""

from __future__ import annotations

from hashlib import blake2b

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import digests, fields
from rlite_pubsub.storage.keys.fields import Field

NUMBER = 7
DUE_MS = 1_900_000_000_000


def test_digest_is_of_the_member_that_is_asked_for_whatever_was_asked_before() -> None:
    for member in (b"a", b"a", b"b", b"", b"a", bytes(bytearray(b"a")), b"b" * 600):
        assert digests.digest(member) == blake2b(member, digest_size=16).digest()


def test_record_of_a_field_is_what_was_packed() -> None:
    for name, value, due_ms in ((b"name", b"value", 0), (b"", b"", DUE_MS), (b"n" * 600, b"v", 1)):
        assert fields.unpack(fields.pack(name, value, due_ms)) == Field(name, value, due_ms)


def test_field_that_expires_stands_in_one_place_of_the_order(environment: Environment) -> None:
    key = fields.key(NUMBER, b"name")

    def work(txn: Txn) -> list[int]:
        dues = []
        for before_ms, after_ms in ((0, DUE_MS), (DUE_MS, DUE_MS), (DUE_MS, DUE_MS - 1), (DUE_MS - 1, 0), (0, 0)):
            fields.set_due(txn, NUMBER, key, before_ms, after_ms)
            dues.append(fields.first_due_ms(txn, NUMBER))
        return [*dues, len(list(databases.items(txn, databases.FIELD_EXPIRIES)))]

    assert environment.write(work) == [DUE_MS, DUE_MS, DUE_MS - 1, 0, 0, 0]
