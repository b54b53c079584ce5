"""Fields of large hashes: one is replaced with one look, and expires no more."""

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


def test_field_that_is_replaced_is_told_from_one_that_is_new(environment: Environment) -> None:
    def work(txn: Txn) -> tuple[int, int, Field | None]:
        new = fields.replace(txn, NUMBER, b"name", b"value")
        again = fields.replace(txn, NUMBER, b"name", b"other")
        return new, again, fields.get(txn, NUMBER, b"name")

    assert environment.write(work) == (-1, 0, Field(b"name", b"other", 0))


def test_field_that_is_replaced_expires_no_more(environment: Environment) -> None:
    def work(txn: Txn) -> tuple[int, int, int, int]:
        fields.put(txn, NUMBER, Field(b"name", b"value", DUE_MS), 0)
        first = fields.first_due_ms(txn, NUMBER)
        before = fields.replace(txn, NUMBER, b"name", b"other")
        left = len(list(databases.items(txn, databases.FIELD_EXPIRIES)))
        return first, before, fields.first_due_ms(txn, NUMBER), left

    assert environment.write(work) == (DUE_MS, DUE_MS, 0, 0)
