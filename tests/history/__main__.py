"""Histories of random clients whose processes are killed, and whether they can be so.

    python -m tests.history [--seed N] [--kills N] [--kills-each N] [--folder FOLDER]
    python -m tests.history --judge FOLDER

A history has a store of its own, and its seed is `N.0`, `N.1`, …; `--seed 7.31` plays one of them again: the same dice
fall, the timing is never quite the same. What a history with faults has left is kept under FOLDER, and `--judge` reads
it once more. The exit status is 1 if there were faults.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

KILLS_EACH = 25
FAULTS_TOLD = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.history")
    parser.add_argument("--seed", default=str(secrets.randbits(32)))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--kills-each", type=int, default=KILLS_EACH, help="of one history")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--judge", type=Path, metavar="FOLDER")
    words = parser.parse_args()
    if words.judge is not None:
        faulty, told = _judged(words.judge, words.judge.name)
        print(told)
        return faulty
    clock = _wrong_clock(words.folder)
    kills, number, faulty = 0, 0, 0
    while kills < words.kills:
        seed = words.seed if "." in words.seed else f"{words.seed}.{number}"
        number += 1
        made, found = _history(words.folder, seed, min(words.kills_each, words.kills - kills), clock)
        kills += made
        faulty += found
        print(f"{kills} kills, {number} histories, {faulty} with faults", flush=True)
    return 1 if faulty else 0


def _wrong_clock(folder: Path) -> mmap.mmap:
    """Whoever is forked from here on has the wall clock that it says."""
    file = Path(tempfile.mkstemp(dir=folder)[1])
    file.write_bytes(bytes(8))
    os.environ["RLITE_TEST_CLOCK"] = str(file)
    import tests.faults.clock.sitecustomize  # noqa: F401  before anything else has looked at the clock

    with file.open("r+b") as opened:
        clock = mmap.mmap(opened.fileno(), 8)
    file.unlink()
    return clock


def _history(folder: Path, seed: str, kills: int, clock: mmap.mmap) -> tuple[int, int]:
    """One of them: its kills, and 1 if it can't be so."""
    from tests.history.crew import Crew, own_disk

    place = Path(tempfile.mkdtemp(prefix=f"history-{seed}-", dir=folder))
    disk = place / "disk"
    disk.mkdir()
    crew = Crew(place, disk, seed, clock, may_fill=own_disk(disk))
    began_s = time.monotonic()
    failure = None
    try:
        crew.start()
        while crew.kills < kills:
            crew.befall()
        crew.finish()
    except AssertionError as stuck:
        failure = str(stuck)
    finally:
        crew.kill_all()
    lives = [fault for life in crew.ended if (fault := life.fault())]
    (place / "lives").write_text(json.dumps(lives + [failure] * (failure is not None)))
    print(
        f"seed {seed}: {crew.kills} kills, {crew.stops} stops, {crew.jumps} jumps of the clock, "
        f"{crew.fillings} times a full disk, in {time.monotonic() - began_s:.1f} s"
    )
    faulty, told = _judged(place, seed)
    print(told, flush=True)
    if faulty:
        shutil.copytree(
            crew.store, place / "store", ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("*.fifo")
        )
    if os.path.ismount(disk):
        os.system(f"umount -l {disk}")
    if not faulty:
        shutil.rmtree(place)
    return crew.kills, faulty


def _judged(place: Path, seed: str) -> tuple[int, str]:
    """1 if there are faults; and what to say."""
    from tests.history import operations
    from tests.history.checks import events, judge
    from tests.history.crew import DURABLES
    from tests.soak import ledger

    history = operations.read(sorted((place / "pages").iterdir()))
    pages = [ledger.read(path) for path in sorted((place / "readers").iterdir())]
    found: list[str] = json.loads((place / "lives").read_text())
    if not found:
        found += json.loads((place / "proven").read_text())
        streams = [events.read(path) for path in sorted((place / "streams").iterdir())]
        found += judge.faults(history, pages, DURABLES, streams)
    outcomes = Counter(one.outcome for one in history)
    heard = sum(len(heard) for page in pages for heard in page.received.values())
    told = f"    {dict(outcomes)}, {heard} messages heard: {len(found)} fault(s)"
    if found:
        told += "\n" + "\n".join(found[:FAULTS_TOLD]) + f"\n--seed {seed}, in {place}"
    return int(bool(found)), told


if __name__ == "__main__":
    sys.exit(main())
