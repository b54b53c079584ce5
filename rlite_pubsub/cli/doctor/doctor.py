"""`doctor`: a look at a store's folder, which also cleans up after the dead, or at a server by its URL.

The exit code is 0 if all is well, and 1 if something is wrong, which is then said.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from rlite_pubsub.cli.doctor.files import existing, readers_of, sizes_of
from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.target import add_target, client_of, folder_of, is_server

if TYPE_CHECKING:
    from rlite_pubsub.storage.store import Store


def doctor(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    add_target(parser)
    parser.add_argument(
        "--deep", action="store_true", help="read every record, and check that they fit together (folders only)"
    )
    parser.set_defaults(run=_doctor)


DOCTOR_PATIENCE_S = 1.0


def _doctor(arguments: argparse.Namespace) -> int:
    if not is_server(arguments.store):
        return _of_folder(folder_of(arguments.store), is_deep=arguments.deep)
    if arguments.deep:
        raise CommandFailed("--deep reads the files of a store: give its folder, on the machine where it is")
    from rlite_pubsub.cli.doctor.server import look

    with client_of(arguments.store) as client:
        return look(client)


def _of_folder(folder: str, *, is_deep: bool) -> int:
    from rlite_pubsub.pubsub.census import census
    from rlite_pubsub.pubsub.reaping import reap_dead
    from rlite_pubsub.storage.errors import StoreHeld
    from rlite_pubsub.storage.journal.journal import damaged_path

    are_faults = False
    with existing(folder) as store:
        store.wait_for_writers(DOCTOR_PATIENCE_S)
        try:
            reaped = reap_dead(store)
            for environment in (store.live, store.data):
                environment.check_writer()
        except StoreHeld as held:
            print(f"held       {held}: nothing can be written until it goes on (kill -CONT) or ends")
            return 1
        entries = census(store)
        print(f"store      {store.folder}")
        for environment in (store.live, store.data):
            print(f"{environment.path.name:10} {sizes_of(environment)}")
        print(f"reaped     {len(reaped)} dead subscriber(s)")
        for state in ("alive", "dead", "unknown"):
            print(f"{state:10} {sum(entry.state == state for entry in entries)} subscriber(s)")
        for line in readers_of(store):
            print(line)
        damaged = damaged_path(store.data.path)
        if damaged.exists():
            lost_at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(damaged.stat().st_mtime))
            print(
                f"damaged    {damaged}: a journal that was damaged when the store was opened at {lost_at}: what was "
                "acknowledged behind its damage is lost (the log says how much); remove the file when you have seen it"
            )
            are_faults = True
        if is_deep:
            return max(_proven(store, folder), int(are_faults))
    return int(are_faults)


def _proven(store: Store, folder: str) -> int:
    from rlite_pubsub.cli.doctor.proof import faults

    found = 0
    for fault in faults(store, folder):
        found += 1
        print(f"fault      {fault}")
    print(f"proof      {found} fault(s)")
    return 1 if found else 0
