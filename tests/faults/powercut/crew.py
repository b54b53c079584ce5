"""Who uses the store while the power may go: programs and servers, sealing, compaction and backup; the log of what they
do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.powercut import images
from tests.patience import until

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
TRANSACTIONS = 120
"""Of each client."""


class Shape(NamedTuple):
    """Who uses the store."""

    policy: str
    programs: int = 0
    servers: int = 0
    seals: bool = False
    """The servers have a cold store: the oldest entries become blocks all the time."""
    compacts: bool = False
    """Free pages are given back all the time."""
    backs_up: bool = False
    """A backup follows the store."""

    @property
    def name(self) -> str:
        words = [self.policy, f"{self.programs}-programs", f"{self.servers}-servers"]
        words += ["sealing"] * self.seals + ["compacting"] * self.compacts
        return "-".join(words + ["backing-up"] * self.backs_up)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("always", programs=1),
        Shape("everysec", programs=1),
        Shape("always", programs=2, servers=2),
        Shape("everysec", programs=1, servers=1),
        Shape("always", servers=1, seals=True),
        Shape("everysec", programs=2, servers=2, seals=True, compacts=True),
        Shape("always", programs=1, compacts=True),
        Shape("everysec", programs=1, servers=1, seals=True, backs_up=True),
    )
}


def made_recorder(folder: Path) -> Path | None:
    """What is preloaded; None where it can't be made."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "recorder.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, HERE / "recorder.c", "-ldl"], check=True)
    return library


def run(
    shape: Shape, folder: Path, recorder: Path, transactions: int = TRANSACTIONS, left: images.Image | None = None
) -> Path:
    """All that they have to do; the log of what happened to `folder/disk`. `left`: they go on with what a power cut has
    left, in a second start of the machine."""
    disk, log = folder / "disk", folder / "log"
    notes, store = disk / "notes", disk / "store"
    disk.mkdir()
    images.write(left or {}, disk)
    (folder / "boot").write_text("a-second-start-of-the-machine")
    environment = os.environ | {
        "LD_PRELOAD": str(recorder),
        "RLITE_DISK_FOLDER": str(disk),
        "RLITE_DISK_LOG": str(log),
    }
    if left is not None:
        environment["RLITE_DISK_BOOT"] = str(folder / "boot")

    def start(*words: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, *words], cwd=ROOT, env=environment, stderr=subprocess.PIPE, **options)

    with ExitStack() as running:
        targets = [str(store)] * shape.programs
        for number in range(shape.servers):
            socket, said = folder / f"socket-{number}", folder / f"said-{number}"
            words = ["--port", "0", "--unixsocket", str(socket), "--dir", str(store), "--logfile", str(said)]
            words += ["--appendfsync", shape.policy]
            words += ["--cold-store", "local", "--cold-block-size", "32kb"] if shape.seals else []
            server = running.enter_context(start("-m", "rlite_pubsub", "serve", *words))
            running.callback(server.terminate)
            until(lambda: said.exists() and "Ready to accept" in said.read_text(), "a server")  # noqa: B023
            targets.append(f"unix://{socket}")
        workers = [
            start(str(HERE / "work.py"), target, str(notes), shape.policy, str(transactions), f"w{number}")
            for number, target in enumerate(targets)
        ]
        compactions = 0
        if shape.compacts:
            until((store / "live.mdb").exists, "a store")
        while shape.compacts and any(worker.poll() is None for worker in workers):
            with start("-m", "rlite_pubsub", "compact", "-s", str(store), stdout=subprocess.PIPE) as compaction:
                _, failure = compaction.communicate()
                assert compaction.returncode == 0, failure.decode()
                compactions += 1
        backing = None
        if shape.backs_up:
            until(notes.exists, "a note")
            words = [str(HERE / "backing.py"), *map(str, (store, notes, disk / "backup", disk / "told"))]
            backing = running.enter_context(start(*words, stdin=subprocess.PIPE))
            until((disk / "told").exists, "a backup")
        for worker in workers:
            _, said_of_it = worker.communicate()
            assert worker.returncode == 0, said_of_it.decode()
        if backing is not None:
            _, said_of_it = backing.communicate()
            assert backing.returncode == 0, said_of_it.decode()
    assert bool(compactions) == shape.compacts, "nobody tried to give pages back to the file system"
    return log
