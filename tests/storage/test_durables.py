"""Durable subscribers in the store: who they are, where they are attached, what they have lost, what waits for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.mail import forms, losses, mailboxes, messages
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import attachments, durables
from rlite_pubsub.storage.names.attachments import Attachment
from rlite_pubsub.storage.names.durables import Durable

LONG = b"long" * 100
ONE = Durable(b"one", 1, 60, 1000, 0, 5, 6)
BOX = Mailbox(1)


def test_each_is_found_by_its_name_however_long(environment: Environment) -> None:
    long = replace(ONE, name=LONG, id=2, is_expired=True, dropped=9)

    def work(txn: Txn) -> None:
        durables.put(txn, ONE)
        durables.put(txn, long)
        assert durables.get(txn, b"one") == ONE
        assert durables.get(txn, LONG) == long
        assert {durable.id for durable in durables.every(txn)} == {1, 2}
        assert durables.remove(txn, b"one")
        assert durables.get(txn, b"one") is None

    environment.write(work)


def test_another_of_the_same_name_is_not_the_same(environment: Environment) -> None:
    def work(txn: Txn) -> None:
        assert not durables.exists(txn, ONE)
        durables.put(txn, replace(ONE, id=7))
        assert not durables.exists(txn, ONE)
        durables.put(txn, ONE)
        assert durables.exists(txn, replace(ONE, seen_ms=99))

    environment.write(work)


def test_only_who_is_attached_can_be_removed_as_such(environment: Environment) -> None:
    old, new = Attachment(8, 1), Attachment(9, 1)

    def work(txn: Txn) -> None:
        assert attachments.put(txn, 1, old) is None
        assert attachments.put(txn, 1, new) == old
        assert not attachments.remove(txn, 1, old)
        assert attachments.get(txn, 1) == new
        attachments.put(txn, 2, old)
        assert attachments.drop_subscriber(txn, 9) == 1
        assert attachments.every(txn) == {2: old}

    environment.write(work)


def test_what_is_lost_while_it_is_told_stays_to_be_told(environment: Environment) -> None:
    def work(txn: Txn) -> None:
        losses.add(txn, 1, b"news", 3, 100)
        losses.add(txn, 1, LONG, 1, 100)
        losses.add(txn, 2, b"news", 5, 100)
        losses.add(txn, 1, b"news", 2, 200)
        assert losses.of(txn, 1, 1) == [(b"news", 5, 100)]
        losses.told(txn, 1, b"news", 3)
        losses.told(txn, 1, LONG, 1)
        assert losses.of(txn, 1) == [(b"news", 2, 100)]
        assert losses.drop(txn, 1, 10) == 1
        assert losses.of(txn, 2) == [(b"news", 5, 100)]

    environment.write(work)


@pytest.mark.parametrize("matched", [(None,), (b"n*",), (None, b"n*", b"", b"\0\1")])
def test_forms_come_back_as_they_were_packed(matched: forms.Forms) -> None:
    assert forms.unpack(forms.pack(3, 4, forms.pack_forms(matched))) == (3, 4, matched)


def test_waiting_messages_are_those_behind_a_sequence_whatever_was_taken_before_or_between(
    environment: Environment,
) -> None:
    def deliver(txn: Txn, count: int) -> int:
        note = forms.pack(forms.next_before(txn, BOX), count, forms.pack_forms((None,)))
        return mailboxes.deliver(txn, b"letter", [(BOX, note)])

    def work(txn: Txn) -> None:
        assert forms.waiting_messages(txn, BOX) == 0
        first, second, third = deliver(txn, 5), deliver(txn, 1), deliver(txn, 10)
        assert forms.waiting_messages(txn, BOX) == 16
        assert forms.waiting_messages(txn, BOX, first) == 11
        assert mailboxes.backlog(txn, BOX, first) == (2, 12)
        mailboxes.remove_one(txn, BOX, second)
        assert forms.waiting_messages(txn, BOX, first) == 10
        mailboxes.remove(txn, BOX, first)
        assert forms.waiting_messages(txn, BOX) == 10
        mailboxes.remove(txn, BOX, third)
        assert forms.waiting_messages(txn, BOX) == messages.count(txn) == 0
        deliver(txn, 2)
        assert forms.waiting_messages(txn, BOX) == 2

    environment.write(work)


def test_durability_that_is_set_later_brings_each_commit_to_the_disk(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watched:
        def __init__(self, environment: object) -> None:
            self.environment, self.syncs = environment, 0

        def sync(self, force: bool) -> None:
            self.syncs += 1

        def __getattr__(self, name: str) -> object:
            return getattr(self.environment, name)

    watched = Watched(environment.handle.lmdb)
    monkeypatch.setattr(environment.handle, "lmdb", watched)
    environment.write(lambda txn: txn.put(b"k", b"1"))
    assert watched.syncs == 0
    environment.sync_by("always")
    environment.write(lambda txn: txn.put(b"k", b"2"))
    assert watched.syncs == 1


def test_every_commit_moves_the_number_of_the_last(environment: Environment) -> None:
    before = environment.last_commit()
    environment.read(lambda txn: txn.get(b"k"))
    assert environment.last_commit() == before
    environment.write(lambda txn: txn.put(b"k", b"1"))
    assert environment.last_commit() > before
