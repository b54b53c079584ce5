"""How much waits in a subscriber's mailboxes."""

from __future__ import annotations

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import MailboxSize


def backlog_of(txn: Txn, subscriber: int) -> MailboxSize:
    """In all of them together."""
    found = [mailboxes.backlog(txn, mailbox) for mailbox in mailboxes.mailboxes_of(txn, subscriber)]
    return MailboxSize(sum(one.messages for one in found), sum(one.bytes for one in found))
