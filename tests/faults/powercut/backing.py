"""Follows a store with a backup, and notes what can surely be restored: each note is a write to a file that the
recorder sees, too.

    python backing.py STORE NOTES TARGET TOLD      until its standard input ends

Before each backup it reads what was acknowledged (work.py); when that backup has said that it is done, it notes all of
these numbers.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from rlite_pubsub.backup.follower import BackupFollower, BackupPlan
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.store import Store

PLAN = BackupPlan(interval_s=0.02, retain_s=1)
"""So that there are several snapshots, and old files go."""


def now_ms() -> int:
    return int(time.time() * 1000)


def main(folder: str, notes: str, target: str, told: str) -> None:
    descriptor = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with Store.open(folder) as store:
        follower = BackupFollower(store, open_place(target, "/"), PLAN, now_ms)
        while not select.select([0], [], [], 0)[0]:
            acknowledged = dict(line.split() for line in Path(notes).read_text().splitlines())
            asked_ms = now_ms() + 1
            time.sleep(0.002)
            while follower.state.as_of_ms < asked_ms:
                follower.tick(is_asked=True)
                assert not follower.state.error, follower.state.error
                time.sleep(PLAN.interval_s)
            os.write(descriptor, b"".join(f"{name} {number}\n".encode() for name, number in acknowledged.items()))
        snapshots = follower.state.snapshots
        follower.end()
    assert snapshots > 0


if __name__ == "__main__":
    main(*sys.argv[1:])
