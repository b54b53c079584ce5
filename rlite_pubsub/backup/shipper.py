"""The process that follows a store, and brings every change to a target.

    python -m rlite_pubsub.backup.shipper     started, and ended, by a server (server/companions/shipping.py)

What is to be done stands in the first line of its standard input, for it may have secrets in it; another line changes
the interval or what is retained. Whoever starts it holds that input: when it ends, what was committed last is brought
away, if that is a matter of seconds, and then it ends. Of several that are started on one store one is at it.

It holds no page for longer than an interval. It never writes to the store, but for its id, once.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import time
from pathlib import Path

from rlite_pubsub.backup import room
from rlite_pubsub.backup.follower import BackupFollower, BackupPlan
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.commons.backup_state import BELL, folder_of
from rlite_pubsub.storage.errors import StoreError, StoreUnwritable
from rlite_pubsub.storage.store import Store
from rlite_pubsub.wakeups.doorbell import Doorbell

log = logging.getLogger("rlite_pubsub")

NICENESS = 10
LOOK_SECONDS = 0.5
"""Until one sees that another has ended."""
SHORT_SECONDS = 0.05
"""Between two looks whether a snapshot has come to its end, or many commits have been made."""
QUIET_SECONDS = 0.25
"""The same, where nothing was."""
ROLL_SECONDS = 1.0
"""So old a pin may become, however long the interval is."""
END_SECONDS = 5.0
"""What is left when it is to end may take so long."""


def follow(store: Store, place: Place, plan: BackupPlan, waits: int) -> None:
    """Follow the store until what `waits` names has ended. Raises StoreError."""
    room.check_outside(place, store.folder)
    lock = room.BackupLock(store.folder, "shipper.lock")
    try:
        while not lock.take():
            ready, _, _ = select.select([waits], [], [], LOOK_SECONDS)
            if ready:
                changed = _plan_from(waits)
                if changed is None:
                    return
                plan = changed
        os.nice(NICENESS)
        _follow(BackupFollower(store, place, plan, _now_ms), _bell(store.folder), waits)
    finally:
        lock.close()


def _follow(follower: BackupFollower, bell: Doorbell, waits: int) -> None:
    try:
        due, pause_s = time.monotonic(), 0.0
        while True:
            ready, _, _ = select.select([waits, bell.fileno()], [], [], pause_s)
            is_asked = bell.fileno() in ready
            if is_asked:
                bell.clear()
            if waits in ready:
                changed = _plan_from(waits)
                if changed is None:
                    break
                follower.obey(changed)
            if is_asked or follower.wants_tick or time.monotonic() >= due:
                follower.tick(is_asked=is_asked)
                now = time.monotonic()
                due = min(now + ROLL_SECONDS, max(now + SHORT_SECONDS, follower.cut_at))
            look_s = QUIET_SECONDS if follower.is_quiet else SHORT_SECONDS
            pause_s = min(max(0.0, due - time.monotonic()), look_s)
        end = time.monotonic() + END_SECONDS
        follower.tick(is_asked=True)
        while not follower.is_settled and time.monotonic() < end:
            time.sleep(SHORT_SECONDS)
            if follower.wants_tick:
                follower.tick(is_asked=True)
    finally:
        bell.remove()
        follower.end()


def _bell(folder: Path) -> Doorbell:
    try:
        return Doorbell.hang(folder_of(folder), BELL)
    except OSError as error:
        raise StoreUnwritable(folder_of(folder), os.strerror(error.errno or 0)) from error


def _plan_from(waits: int) -> BackupPlan | None:
    """Read a plan; return None at the end."""
    said = os.read(waits, 65536)
    if not said:
        return None
    words = json.loads(said.splitlines()[-1])
    return BackupPlan(words["interval_s"], words["retain_s"])


def _now_ms() -> int:
    return int(time.time() * 1000)


def main() -> int:
    """See above."""
    words = json.loads(_line(sys.stdin.fileno()))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        with Store.open(words["dir"], quota_bytes=words["quota_bytes"], durability=words["durability"]) as store:
            plan = BackupPlan(words["interval_s"], words["retain_s"])
            follow(store, open_place(words["url"], words["base"]), plan, sys.stdin.fileno())
    except StoreError as failure:
        log.error("Can't back up: %s", failure)
        return 1
    return 0


def _line(descriptor: int) -> bytes:
    """And nothing of the next."""
    line = b""
    while not line.endswith(b"\n") and (piece := os.read(descriptor, 1)):
        line += piece
    return line


if __name__ == "__main__":
    sys.exit(main())
