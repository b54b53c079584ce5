"""What does not fit is found, whichever record is missing."""

from __future__ import annotations

import pytest

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.mail.proof import faults
from rlite_pubsub.storage.names import receivers
from rlite_pubsub.storage.names.durables import Durable, put


def found(environment: Environment, *, are_durable: bool = False) -> list[str]:
    return environment.read(lambda txn: list(faults(txn, are_durable=are_durable)))


@pytest.fixture
def filled(environment: Environment) -> Environment:
    def fill(txn: Txn) -> None:
        for id in (1, 2):
            put(txn, Durable(b"%d" % id, id, 0, 0, 0, 0, 0))
            receivers.set_counts(txn, id, {("channels", b"news"): 1, ("patterns", b"n*" * 300): 1})
        mailboxes.deliver(txn, b"to both", [(Mailbox(1), b""), (Mailbox(2), b"")])
        mailboxes.deliver(txn, b"to one", [(Mailbox(1), b"")], count=3)
        mailboxes.deliver(txn, b"to one", [(Mailbox(1), b"")])

    environment.write(fill)
    return environment


def test_what_our_transactions_leave_fits(filled: Environment) -> None:
    assert found(filled, are_durable=True) == []
    filled.write(lambda txn: mailboxes.remove_one(txn, Mailbox(1), 2))
    filled.write(lambda txn: mailboxes.remove(txn, Mailbox(2), 1))
    assert found(filled, are_durable=True) == []


@pytest.mark.parametrize(
    ("database", "told"),
    [
        (databases.CHANNELS, "has the name, and is not found by it"),
        (databases.PATTERNS, "has the name, and is not found by it"),
        (databases.SUBSCRIPTIONS, "is found by a name it has not"),
        (databases.MESSAGES, "and is not there"),
        (databases.MAILBOXES, "and counts"),
        (databases.REFERENCES, "and counts 1"),
        (databases.DURABLES, "has no record"),
    ],
)
def test_record_that_is_missing_is_found(filled: Environment, database: bytes, told: str) -> None:
    def drop_first(txn: Txn) -> None:
        key, _ = next(databases.items(txn, database))
        txn.delete(key)

    filled.write(drop_first)
    assert any(told in fault for fault in found(filled, are_durable=True))


def test_mailbox_whose_entries_count_backwards_is_found(filled: Environment) -> None:
    def forget_what_was_before(txn: Txn) -> None:
        key, value = list(databases.items(txn, databases.MAILBOXES))[2]
        txn.put(key, bytes(16) + value[16:])

    filled.write(forget_what_was_before)
    assert any("counts less before it than there was" in fault for fault in found(filled))
