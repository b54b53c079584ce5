"""The store as another process sees it: each look is a process of its own, for LMDB is opened once per process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_LOOK = """
import json, sys
from rlite_pubsub.storage.mail import mailboxes, messages
from rlite_pubsub.storage.names import receivers, subscribers, subscriptions
from rlite_pubsub.storage.store import Store

with Store.open(sys.argv[1]) as store:
    def look(txn):
        ids = set(subscribers.records(txn)) | set(subscriptions.subscribers(txn)) | set(mailboxes.owners(txn))
        boxes = [mailbox for owner in ids for mailbox in mailboxes.mailboxes_of(txn, owner)]
        return {
            "names": sorted(
                [database.name, receiver.name.decode("latin-1"), receiver.sessions]
                for database in receivers.DATABASES.values()
                for receiver in receivers.receivers(txn, database)
            ),
            "held": sum(len(subscriptions.held(txn, one)) for one in ids),
            "subscribers": len(subscribers.records(txn)),
            "mailboxes": [list(mailboxes.backlog(txn, box)) for box in boxes],
            "messages": messages.count(txn),
        }
    print(json.dumps(store.live.read(look)))
"""


class View(NamedTuple):
    """All records of live.mdb that anybody's life leaves there."""

    names: list[list[object]]
    """[database, name, sessions] of each name that is held."""
    held: int
    """How many names stand under their subscriber, for the reaper."""
    subscribers: int
    mailboxes: list[list[int]]
    """[messages, bytes] of each mailbox that is not empty."""
    messages: int

    @property
    def has_no_names(self) -> bool:
        return not self.names and not self.held

    @property
    def has_no_mail(self) -> bool:
        return not self.mailboxes and not self.messages


def look(store_folder: Path) -> View:
    ended = subprocess.run([sys.executable, "-c", _LOOK, str(store_folder)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return View(**json.loads(ended.stdout))


def subscriber_files(store_folder: Path) -> list[str]:
    """Lock files and FIFOs."""
    return sorted(os.listdir(store_folder / "subscribers"))
