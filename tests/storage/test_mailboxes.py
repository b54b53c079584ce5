"""Mailboxes: oldest first, one message in many mailboxes stored once, and nothing left when the last has let it go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mailbox_sizes import backlog_of

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import DanglingLetter
from rlite_pubsub.storage.mail import letters, mailboxes, messages
from rlite_pubsub.storage.mail.mailboxes import Letter, Mailbox, MailboxSize

ONE, OTHER = Mailbox(1), Mailbox(1, 7)
NEIGHBOUR = Mailbox(2**64 - 1, 2**64 - 1)
ALL = 1 << 40


def taken(txn: Txn, mailbox: Mailbox, limit_bytes: int = ALL) -> list[bytes]:
    return [letter.message for letter in mailboxes.take(txn, mailbox, limit_bytes)]


def all_keys(txn: Txn) -> list[bytes]:
    return list(txn.cursor().iternext(values=False))


def test_letters_come_oldest_first_with_their_notes_and_stay_until_removed(txn: Txn) -> None:
    first = mailboxes.deliver(txn, b"hello", [(ONE, b"h*"), (OTHER, b"")])
    second = mailboxes.deliver(txn, b"", [(ONE, b"")])
    for _ in range(2):
        assert mailboxes.take(txn, ONE, ALL) == [Letter(first, b"hello", b"h*"), Letter(second, b"", b"")]
    assert mailboxes.take(txn, ONE, ALL, after_sequence=first) == [Letter(second, b"", b"")]
    assert mailboxes.remove(txn, ONE, first) == 1
    assert taken(txn, ONE) == [b""]
    assert taken(txn, OTHER) == [b"hello"]
    assert taken(txn, NEIGHBOUR) == []


def test_a_limit_bounds_what_is_taken_but_one_always_comes(txn: Txn) -> None:
    for _ in range(5):
        mailboxes.deliver(txn, b"x" * 100, [(ONE, b"")])
    assert len(taken(txn, ONE, 1)) == 1
    assert len(taken(txn, ONE, 299)) == 2
    assert len(taken(txn, ONE, 300)) == 3


def test_a_message_is_stored_once_and_gone_with_its_last_mailbox(txn: Txn) -> None:
    sequence = mailboxes.deliver(txn, b"shared", [(Mailbox(number), b"") for number in range(1, 4)])
    mailboxes.push(txn, OTHER, sequence, 6)
    assert messages.count(txn) == 1 and messages.references(txn, sequence) == 4
    for mailbox in (OTHER, Mailbox(3), Mailbox(1)):
        assert mailboxes.remove(txn, mailbox, sequence) == 1
        assert messages.read(txn, sequence) == b"shared"
    assert mailboxes.remove(txn, Mailbox(2), sequence) == 1
    assert all_keys(txn) == [databases.LAST_SEQUENCE]


def test_letters_removed_together_leave_those_messages_that_others_still_refer_to(txn: Txn) -> None:
    for name, to in ((b"a", [ONE]), (b"b", [ONE, OTHER]), (b"c", [ONE])):
        mailboxes.deliver(txn, name, [(mailbox, b"") for mailbox in to])
    assert mailboxes.drop(txn, ONE) == 3
    assert (taken(txn, OTHER), messages.count(txn)) == ([b"b"], 1)
    mailboxes.drop(txn, OTHER)
    assert messages.count(txn) == 0


def test_a_message_that_was_stored_for_later_is_gone_with_its_only_mailbox(txn: Txn) -> None:
    sequence = messages.append(txn, b"later")
    mailboxes.push(txn, ONE, sequence, 5)
    mailboxes.drop(txn, ONE)
    assert all_keys(txn) == [databases.LAST_SEQUENCE]


def test_a_message_that_nobody_took_can_be_released(txn: Txn) -> None:
    assert messages.release(txn, messages.append(txn, b"for nobody"))
    assert all_keys(txn) == [databases.LAST_SEQUENCE]


def test_a_sequence_is_never_given_twice(txn: Txn) -> None:
    first = mailboxes.deliver(txn, b"", [(ONE, b"")])
    mailboxes.drop(txn, ONE)
    assert mailboxes.deliver(txn, b"", [(ONE, b"")]) > first


def test_dropping_a_subscriber_leaves_the_others_mailboxes(txn: Txn) -> None:
    for _ in range(5):
        mailboxes.deliver(txn, b"x", [(ONE, b""), (OTHER, b""), (Mailbox(2), b"")])
    assert mailboxes.mailboxes_of(txn, 1) == [ONE, OTHER]
    assert mailboxes.owners(txn) == [1, 2]
    assert [mailboxes.drop_subscriber(txn, 1, 4) for _ in range(4)] == [4, 4, 2, 0]
    assert mailboxes.owners(txn) == [2]
    assert len(taken(txn, Mailbox(2))) == 5
    assert mailboxes.drop(txn, Mailbox(2), 3) == 3
    assert mailboxes.backlog(txn, Mailbox(2)) == MailboxSize(2, 2)


def test_the_age_of_a_mailbox_is_that_of_its_oldest_message(txn: Txn) -> None:
    assert mailboxes.oldest_ms(txn, ONE) is None
    first = mailboxes.deliver(txn, b"first", [(ONE, b"note"), (OTHER, b"")], at_ms=5)
    mailboxes.deliver(txn, b"second", [(ONE, b"")], at_ms=7)
    assert (mailboxes.oldest_ms(txn, ONE), mailboxes.oldest_ms(txn, OTHER)) == (5, 5)
    mailboxes.remove(txn, ONE, first)
    assert (mailboxes.oldest_ms(txn, ONE), mailboxes.oldest_ms(txn, OTHER)) == (7, 5)
    assert mailboxes.oldest_ms(txn, NEIGHBOUR) is None


def test_a_run_counts_as_the_messages_that_it_holds(txn: Txn) -> None:
    first = mailboxes.deliver(txn, b"abc", [(ONE, b"")], count=3)
    mailboxes.deliver(txn, b"de", [(ONE, b""), (OTHER, b"")], count=2)
    assert mailboxes.backlog(txn, ONE) == (5, 5)
    assert backlog_of(txn, 1) == (7, 7)
    mailboxes.remove(txn, ONE, first)
    assert mailboxes.backlog(txn, ONE) == (2, 2)


def test_a_mailbox_that_refers_to_nothing_is_damage_and_not_a_lost_message(txn: Txn) -> None:
    messages.release(txn, mailboxes.deliver(txn, b"x", [(ONE, b"")]))
    with pytest.raises(DanglingLetter):
        mailboxes.take(txn, ONE, ALL)


boxes = st.sampled_from([ONE, OTHER, Mailbox(2), NEIGHBOUR])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.sets(boxes, min_size=1), st.binary(max_size=5)),
        st.tuples(st.just("remove"), boxes, st.integers(0, 5)),
        st.tuples(st.just("drop"), boxes, st.none()),
    )
)


@settings(max_examples=100, deadline=None)
@given(steps)
def test_backlogs_and_letters_are_those_of_a_plain_list(shared_environment: Environment, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    model: dict[Mailbox, list[tuple[int, bytes]]] = {box: [] for box in (ONE, OTHER, Mailbox(2), NEIGHBOUR)}
    txn = shared_environment.handle.lmdb.begin(write=True)
    try:
        for step, where, what in steps:
            if step == "deliver":
                sequence = mailboxes.deliver(txn, what, [(box, b"") for box in sorted(where)])
                for box in where:
                    model[box].append((sequence, what))
            elif step == "remove" and model[where]:
                gone = min(what, len(model[where]) - 1) + 1
                assert mailboxes.remove(txn, where, model[where][gone - 1][0]) == gone
                del model[where][:gone]
            elif step == "drop":
                assert mailboxes.drop(txn, where) == len(model[where])
                model[where].clear()
        for box, letters in model.items():
            assert [(letter.sequence, letter.message) for letter in mailboxes.take(txn, box, ALL)] == letters
            assert mailboxes.backlog(txn, box) == (len(letters), sum(len(message) for _, message in letters))
        both = backlog_of(txn, 1)
        assert both.messages == len(model[ONE]) + len(model[OTHER])
        assert messages.count(txn) == len({sequence for letters in model.values() for sequence, _ in letters})
        for box in model:
            mailboxes.drop(txn, box)
        assert set(all_keys(txn)) <= {databases.LAST_SEQUENCE}
    finally:
        txn.abort()


@pytest.mark.parametrize("body", [b"\r\n", b"$1\r\nx\r\n\r\n", b"$-1\r\nx\r\n", b"$x\r\n", b"1"])
def test_what_is_no_run_of_messages_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        letters.tails(letters.MessageRun(0, 1, b"news", body))
