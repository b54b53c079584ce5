"""A worker of a Spark job that is killed behind its block's name leaves a file: nobody refers to it, and it goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from cold_server import Sealer, Twins, blocks, files_of, until_sealed
from patience import PATIENCE_S, until

BLOCK_BYTES = 32 << 10
OLD_S = 25 * 3600
MERGES = """
import sys
from rlite_pubsub.pipeline.jobs import compact
options = compact.Compact(url=sys.argv[1], target_bytes=10**9)
compact.merge(compact._all_runs(options.connect(), options)[int(sys.argv[2])], 1)
"""


def kill_a_worker_behind_the_name(twins: Twins, run: int = 0) -> str:
    """The file that it leaves."""
    before = set(files_of(twins, "t"))
    command = [sys.executable, "-c", MERGES, f"redis://127.0.0.1:{twins.cold_server.port}", str(run)]
    worker = subprocess.run(command, env=os.environ | {"RLITE_FAILPOINT": "cold-file-renamed"}, timeout=PATIENCE_S)
    assert worker.returncode == -signal.SIGKILL
    (left,) = set(files_of(twins, "t")) - before
    return left


def test_a_block_that_a_killed_worker_has_left_is_removed_once_nobody_can_be_about_to_use_it(
    twins: Twins, seal: Callable[..., Sealer]
) -> None:
    twins.add("t", range(1, 3001), 50)
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES)
    until_sealed(twins.cold, "t", BLOCK_BYTES)
    sealer.end()
    used = {each[b"path"].decode() for each in blocks(twins.cold, "t")}
    left = kill_a_worker_behind_the_name(twins)
    assert set(files_of(twins, "t")) == {*used, left}
    folder = twins.cold_server.store_folder / "cold"
    old = time.time() - OLD_S
    for path in used:
        os.utime(folder / path, (old, old))
    twins.add("u", range(1, 2001), 50)
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES)
    until_sealed(twins.cold, "u", BLOCK_BYTES)
    sealer.end()
    assert left in files_of(twins, "t"), "it is young: its driver may be about to have it swapped in"

    os.utime(folder / left, (old, old))
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES)
    until(lambda: left not in files_of(twins, "t"), "its end")
    sealer.end()
    assert set(files_of(twins, "t")) == used
    twins.assert_alike("t", "u")
