"""subscriber -> what happened to its mailbox at its limits that it has not seen yet. In live.mdb, for processes; in
data.mdb, for durable subscribers (whose limits durable/mailbox.py keeps), only up to where letters were dropped.

A publisher keeps a mailbox within its owner's allowance (allowances.py), in the same transaction: the owner may be
asleep, stopped or hung. At a limit the oldest letters are dropped, and counted by channel (losses.py), or the owner is
*cut off*: nothing is sent to it any more, and its mailbox is emptied. When it reads again it is notified, the record is
removed, and its names count again.

One transaction drops no more than some hundred letters: publishers must not wait for the removal of a million.

    key    'o' | subscriber u64
    value  above the soft limit since, ms since 1970 u64 | letters up to this sequence were dropped u64
           | bytes of what is lost and untold, about u64 | cut off at, ms since 1970 u64 (0: not, none of each)
"""

from __future__ import annotations

from collections import Counter
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import allowances, letters, losses, mailboxes
from rlite_pubsub.storage.mail.losses import LostMessages
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import version

SLICE = 500
"""How many letters one transaction drops, at least: about a millisecond's work."""
MARGIN_BYTES = 64 << 10
"""How many more than necessary are dropped, so that not every letter has to drop one."""
LOSS_BYTES = 96
"""About how many bytes it takes to remember that messages of one channel are lost, beside its name."""
TOLD_AT_ONCE = 1000

_KEY = Struct(">cQ")
_VALUE = Struct(">QQQQ")


class Overflow(NamedTuple):
    """What happened to a mailbox."""

    soft_since_ms: int = 0
    dropped_to: int = 0
    loss_bytes: int = 0
    cut_ms: int = 0


NONE = Overflow()


class Relief(NamedTuple):
    """What one transaction did to a mailbox."""

    subscriber: int
    dropped: int = 0
    """Messages."""
    is_first: bool = False
    """Nothing else was lost and not yet reported."""
    is_cut: bool = False


class LossReport(NamedTuple):
    """What its owner is told."""

    overflow: Overflow
    lost: list[LostMessages]
    is_cut: bool
    """It was cut off until now."""
    is_all: bool
    """There is no more to learn."""


def get(txn: Txn, subscriber: int) -> Overflow | None:
    found = txn.get(_KEY.pack(databases.OVERFLOWS, subscriber))
    return None if found is None else Overflow(*_VALUE.unpack(found))


def is_cut(txn: Txn, subscriber: int) -> bool:
    state = get(txn, subscriber)
    return state is not None and state.cut_ms != 0


def cut_off(txn: Txn) -> frozenset[int]:
    """Return all subscribers that are cut off."""
    found = databases.items(txn, databases.OVERFLOWS)
    return frozenset(_KEY.unpack(key)[1] for key, value in found if Overflow(*_VALUE.unpack(value)).cut_ms)


def remove(txn: Txn, subscriber: int) -> bool:
    return txn.delete(_KEY.pack(databases.OVERFLOWS, subscriber))


# -- the publisher's side


def keep(txn: Txn, subscriber: int, at_ms: int, most: int = SLICE) -> Relief:
    """Keep its mailbox within its allowance, dropping at most `most` letters."""
    state = get(txn, subscriber) or NONE
    if state.cut_ms:
        return Relief(subscriber)
    allowance = allowances.get(txn, subscriber)
    size = mailboxes.backlog(txn, Mailbox(subscriber))
    limit_bytes = allowance.hard_bytes if 0 < allowance.hard_bytes <= size.bytes else 0
    if 0 < allowance.soft_bytes <= size.bytes:
        if not state.soft_since_ms:
            state = state._replace(soft_since_ms=at_ms)
            _put(txn, subscriber, state)
        elif not limit_bytes and at_ms - state.soft_since_ms > allowance.soft_seconds * 1000:
            limit_bytes = allowance.soft_bytes
    elif state.soft_since_ms:
        state = state._replace(soft_since_ms=0)
        _put(txn, subscriber, state)
    if not limit_bytes:
        return Relief(subscriber)
    if not allowance.drops_oldest or state.loss_bytes >= max(limit_bytes, MARGIN_BYTES):
        return _cut(txn, subscriber, state, at_ms, most)
    excess_bytes = size.bytes - limit_bytes + min(limit_bytes // 4, MARGIN_BYTES)
    return _drop(txn, subscriber, state, excess_bytes, most)


def make_room(txn: Txn, subscriber: int, at_ms: int) -> Relief:
    """Treat this mailbox as if it were at a limit: the store is full, and it holds the most."""
    state = get(txn, subscriber) or NONE
    if not state.cut_ms and not allowances.get(txn, subscriber).drops_oldest:
        return _cut(txn, subscriber, state, at_ms, SLICE)
    if state.cut_ms:
        mailboxes.drop(txn, Mailbox(subscriber), SLICE)
        return Relief(subscriber)
    return _drop(txn, subscriber, state, mailboxes.backlog(txn, Mailbox(subscriber)).bytes // 4, SLICE)


def largest(txn: Txn) -> tuple[int, int]:
    """Return (subscriber, bytes) of the mailbox that holds the most; (0, 0) if all are empty."""
    held = [(mailboxes.backlog(txn, Mailbox(owner)).bytes, owner) for owner in mailboxes.owners(txn)]
    size_bytes, owner = max(held, default=(0, 0))
    return owner, size_bytes


def empty(txn: Txn, subscriber: int) -> bool:
    """Remove some of the letters of a subscriber that is cut off; return whether there are more."""
    return is_cut(txn, subscriber) and mailboxes.drop(txn, Mailbox(subscriber), SLICE) == SLICE


def _cut(txn: Txn, subscriber: int, state: Overflow, at_ms: int, most: int) -> Relief:
    waiting = mailboxes.backlog(txn, Mailbox(subscriber)).messages
    _put(txn, subscriber, state._replace(cut_ms=at_ms))
    version.bump(txn)
    mailboxes.drop(txn, Mailbox(subscriber), most)
    return Relief(subscriber, waiting, True, True)


def _drop(txn: Txn, subscriber: int, state: Overflow, excess_bytes: int, most: int) -> Relief:
    mailbox = Mailbox(subscriber)
    since_ms = mailboxes.oldest_ms(txn, mailbox) or 0
    lost: Counter[bytes] = Counter()
    dropped_to = 0
    while excess_bytes > 0 and most > 0 and (oldest := mailboxes.take(txn, mailbox, excess_bytes, dropped_to, most)):
        for letter in oldest:
            run = letters.unpack(letter.message)
            lost[bytes((run.kind,)) + run.name] += run.messages
            excess_bytes -= len(letter.message)
        most -= len(oldest)
        dropped_to = oldest[-1].sequence
    if not dropped_to:
        return Relief(subscriber)
    mailboxes.remove(txn, mailbox, dropped_to)
    new_bytes = 0
    for name, messages in lost.items():
        if losses.add(txn, subscriber, name, messages, since_ms):
            new_bytes += LOSS_BYTES + len(name)
    is_first = not state.dropped_to
    _put(txn, subscriber, state._replace(dropped_to=dropped_to, loss_bytes=state.loss_bytes + new_bytes))
    return Relief(subscriber, lost.total(), is_first)


# -- the owner's side


def is_due(txn: Txn, subscriber: int) -> bool:
    """Return whether its owner has something to learn, or to set right."""
    state = get(txn, subscriber)
    return state is not None and bool(state.cut_ms or state.dropped_to or _is_below_soft(txn, subscriber, state))


def dropped_to(txn: Txn, subscriber: int) -> int:
    """Return the sequence up to which letters were dropped without its owner knowing; 0: none."""
    state = get(txn, subscriber)
    return 0 if state is None else state.dropped_to


def note_dropped_to(txn: Txn, subscriber: int, sequence: int) -> None:
    """Note up to where letters were dropped, by any process."""
    _put(txn, subscriber, (get(txn, subscriber) or NONE)._replace(dropped_to=sequence))


def learn(txn: Txn, subscriber: int) -> LossReport:
    """Return what its owner must be told next, and count it as told. A subscriber that was cut off is readmitted once
    it has learned everything."""
    state = get(txn, subscriber)
    if state is None:
        return LossReport(NONE, [], False, True)
    if state.cut_ms:
        removed = mailboxes.drop(txn, Mailbox(subscriber), SLICE) + losses.drop(txn, subscriber, SLICE)
        if removed < SLICE:
            remove(txn, subscriber)
            version.bump(txn)
        return LossReport(state, [], True, removed < SLICE)
    lost = losses.of(txn, subscriber, TOLD_AT_ONCE)
    for one in lost:
        losses.told(txn, subscriber, one.channel, one.messages)
    is_all = len(lost) < TOLD_AT_ONCE
    left = state._replace(dropped_to=0, loss_bytes=0) if is_all else state
    if _is_below_soft(txn, subscriber, state):
        left = left._replace(soft_since_ms=0)
    _put(txn, subscriber, left)
    return LossReport(state, lost, False, is_all)


def _is_below_soft(txn: Txn, subscriber: int, state: Overflow) -> bool:
    if not state.soft_since_ms:
        return False
    return mailboxes.backlog(txn, Mailbox(subscriber)).bytes < allowances.get(txn, subscriber).soft_bytes


def _put(txn: Txn, subscriber: int, state: Overflow) -> None:
    if state == NONE:
        remove(txn, subscriber)
    else:
        txn.put(_KEY.pack(databases.OVERFLOWS, subscriber), _VALUE.pack(*state))
