"""What is found in a journal, whatever else is in its file: most of it is zeros."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from time import process_time

import pytest

from rlite_pubsub.storage.journal.journal import MOST_BYTES, Journal, owed

BOOT = b"0f3d2c1b"
ROWS = {b"key": b"\0" * 40, b"other\0": None, b"\0\0": b"value"}


def written(path: Path, base: int, turns: int) -> bytes:
    with closing(Journal(path, BOOT)) as journal:
        journal.begin(base)
        for number in range(turns):
            assert journal.append({**ROWS, b"n%d" % number: b"\0" * (number * 100)})
    return path.read_bytes()


@pytest.mark.parametrize("base", [0, 1, 256, 1 << 40])
def test_records_behind_a_damaged_one_are_counted_as_lost(tmp_path: Path, base: int) -> None:
    path = tmp_path / "data.journal"
    whole = written(path, base, 5)
    found = owed(path, BOOT, base)
    assert found is not None and len(found.turns) == 5 and not found.lost
    at = whole.index(b"key")
    path.write_bytes(whole[:at] + b"x" + whole[at + 1 :])
    assert owed(path, BOOT, base) == (base, [], 5, False)
    for length in (1, 3, 4, 5, 100):  # and wherever they begin
        path.write_bytes(whole[at : at + 1] * length + b"\0" * length + whole[len(whole) - MOST_BYTES :])
        moved = owed(path, BOOT, base)
        assert moved is not None and moved.lost == 5


def test_a_file_of_zeros_is_passed_over_whatever_the_last_commit_is(tmp_path: Path) -> None:
    """A store whose data.mdb is gone begins at commit 0, whose eight bytes are everywhere in the file."""
    path = tmp_path / "data.journal"
    written(path, 7, 3)

    def spent_s(base: int) -> float:
        began = process_time()
        assert owed(path, BOOT, base) is None
        return process_time() - began

    assert spent_s(0) < 100 * max(spent_s(1), 0.001)
