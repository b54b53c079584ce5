"""`doctor`: a look at a store's folder, which also cleans up after the dead, or at a server by its URL.

The exit code is 0 if all is well, and 1 if something is wrong, which is then said; what has been wrong within the last
hour is a warning.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from rlite_pubsub.cli.doctor.files import existing, readers_of, sizes_of
from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.target import add_target, client_of, folder_of, is_server

if TYPE_CHECKING:
    from rlite_pubsub.cli.doctor.report import Finding
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
    from rlite_pubsub.cli.doctor.report import told
    from rlite_pubsub.pubsub.census import census
    from rlite_pubsub.pubsub.reaping import reap_dead
    from rlite_pubsub.storage.errors import StoreHeld

    with existing(folder) as store:
        store.wait_for_writers(DOCTOR_PATIENCE_S)
        try:
            reaped = reap_dead(store)
            for environment in (store.live, store.data):
                environment.check_writer()
        except StoreHeld as held:
            return told([f"{held}: nothing can be written until it goes on (kill -CONT) or ends"], [], [])
        entries = census(store)
        figures = [f"store      {store.folder}"]
        figures += [f"{each.path.name:10} {sizes_of(each)}" for each in (store.live, store.data)]
        figures.append(f"reaped     {len(reaped)} dead subscriber(s)")
        for state in ("alive", "dead", "unknown"):
            figures.append(f"{state:10} {sum(entry.state == state for entry in entries)} subscriber(s)")
        figures += readers_of(store)
        faults = _faults(store)
        if is_deep:
            unproven = _unproven(store, folder)
            figures.append(f"proof      {len(unproven)} fault(s)")
            faults += unproven
        return told(faults, _findings(store), figures)


def _faults(store: Store) -> list[str]:
    """Return what keeps it from working, or did and is to be seen."""
    from rlite_pubsub.storage.journal.journal import damaged_path

    found = []
    damaged = damaged_path(store.data.path)
    if damaged.exists():
        lost_at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(damaged.stat().st_mtime))
        found.append(
            f"{damaged}: a journal that was damaged when the store was opened at {lost_at}: what was acknowledged "
            "behind its damage is lost (the log says how much); remove the file when you have seen it"
        )
    for environment in (store.data, store.live):
        environment.room.look()
        lack = environment.room.full or environment.room.lack()
        if lack is not None:
            found.append(f"{lack}: writes are refused")
    return found


def _findings(store: Store) -> list[Finding]:
    """Return what happened within the last hour."""
    from rlite_pubsub.cli.doctor.report import Finding
    from rlite_pubsub.engine.stats.warnings import of_incidents

    now_ms = int(time.time() * 1000)
    return [Finding(*each) for each in of_incidents(store.incidents.recent(), now_ms)]


def _unproven(store: Store, folder: str) -> list[str]:
    from rlite_pubsub.cli.doctor.proof import faults

    return list(faults(store, folder))
