"""The soak's own judge: it sees a message that is missing, twice, out of order or astray, and blames nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.ledger import Page, Published, durable_faults, faults

SENT = [Published(number, "a.1" if number % 2 else "b.1", 10 * number) for number in range(1, 7)]


def judged(name: str, *heard: int, ended: bool = False, since_ns: int = 0) -> list[str]:
    reader = Page(Path("reader.page"), subscribed={name: since_ns}, ended=ended)
    reader.received[name, "publisher"] = [(number, SENT[number - 1].channel) for number in heard]
    return faults([reader, Page(Path("publisher.page"), published=SENT)])


def test_all_that_was_sent_adds_up() -> None:
    assert judged("a.*", 1, 3, 5, ended=True) == []


@pytest.mark.parametrize(
    ("heard", "fault"),
    [
        ((1, 3), "not [(5, 'a.1')]"),
        ((1, 5), "not [(3, 'a.1')]"),
        ((1, 3, 3, 5), "[(3, 3)] twice or out of order"),
        ((1, 5, 3), "[(5, 3)] twice or out of order"),
        ((1, 2, 3, 5), "[(2, 'b.1')], which it did not subscribe to"),
    ],
)
def test_what_does_not_add_up_is_told(heard: tuple[int, ...], fault: str) -> None:
    (told,) = judged("a.*", *heard, ended=True)
    assert fault in told


def test_one_that_was_killed_may_lack_the_end_but_nothing_before_what_it_heard_last() -> None:
    assert judged("a.*", 1, 3) == []
    assert len(judged("a.*", 1, 5)) == 1


def test_what_was_sent_before_it_subscribed_is_not_missed() -> None:
    assert judged("a.*", 5, ended=True, since_ns=40) == []


def durable_judged(*lives: tuple[int, ...], since_ns: int = 0, ended: bool = True) -> list[str]:
    pages = []
    for heard in lives:
        pages.append(Page(Path("durable.page"), subscribed={"a.*": since_ns}))
        pages[-1].received["a.*", "publisher"] = [(number, "a.1") for number in heard]
    pages[-1].ended = ended
    return durable_faults(pages, [Page(Path("publisher.page"), published=SENT)])


def test_lives_of_a_durable_subscriber_have_heard_everything_together_and_may_hear_it_twice() -> None:
    assert durable_judged((1, 3), (3, 5)) == []
    assert durable_judged((1,), (), (3, 5)) == []


def test_what_the_lives_of_a_durable_subscriber_were_told_to_be_lost_is_counted() -> None:
    lives = [Page(Path("durable.page"), subscribed={"a.*": 0}) for _ in range(2)]
    lives[0].received["a.*", "publisher"] = [(1, "a.1")]
    lives[1].ended = True
    publisher = [Page(Path("publisher.page"), published=SENT)]
    lives[0].gaps["a.1"] = lives[1].gaps["a.1"] = 1
    assert durable_faults(lives, publisher) == []
    assert faults([*lives, *publisher]) == []
    lives[0].gaps["a.1"] = 0
    (told,) = durable_faults(lives, publisher)
    assert "not [3, 5]" in told
    lives[0].gaps["b.1"] = 7
    assert durable_faults(lives, publisher) == [told]


def test_what_no_life_of_a_durable_subscriber_has_heard_is_told() -> None:
    (told,) = durable_judged((1,), (5,))
    assert "not [3]" in told
    (told,) = durable_judged((1,), (3, 5), ended=False)
    assert "has heard the end" in told
