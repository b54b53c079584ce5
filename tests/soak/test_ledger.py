"""The soak's own judge: it sees a message that is missing, twice, out of order or astray, and blames nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.ledger import Page, Published, faults

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
