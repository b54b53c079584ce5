"""The end of a turn. Its order is the list of stages in storage/agenda.py, first to last: that list is in storage/
because hub, outboxes and keyspace add stages to it.

A turn is all that became readable at once (a server), one pipeline (a program without a server), or what a timer did.
At its end the stages that are due run, and nothing else is asked. The order keeps the laws:
 5. acknowledge after commit: keys and names are committed, and messages to other processes are in their mailboxes,
    before an outbox is flushed.
 1. publish: COMMIT -> ring: bells are rung by the stages that commit.
 6. replay then live: feeds and followers are told after the commit, before the flush.
A stage may make an earlier one due again, as a flush does that finds its peer gone: then that one runs next.
"""

from __future__ import annotations

from rlite_pubsub.storage.agenda import ALL, Agenda


def end_turn(agenda: Agenda, stages: int = ALL) -> None:
    """Run the due ones of these stages, the earliest first, until none is due."""
    steps = agenda.steps
    while due := agenda.due & stages:
        stage = due & -due
        agenda.due ^= stage
        step = steps.get(stage)
        if step is not None:
            step()
    if agenda.later and stages == ALL:
        agenda.begin_next()
