"""A snapshot is copied while others write, a few pages at a time, in whatever order: what is restored is the last
commit, and nothing else."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import rlite_pubsub
from rlite_pubsub.backup import copying, trail
from rlite_pubsub.backup.copying import Copying
from rlite_pubsub.backup.errors import TrailLost
from rlite_pubsub.backup.piece import Content
from rlite_pubsub.backup.restoring import restore
from rlite_pubsub.backup.shipment import Shipment
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.trail import Trail
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.store import Store

IDENTITY = "00" * 16


def change(client: rlite_pubsub.Redis, dice: random.Random) -> None:
    """Pages are freed and used again, long values among them."""
    with client.pipeline(transaction=True) as changes:
        for _ in range(dice.randint(1, 30)):
            key = f"k{dice.randrange(400)}"
            if dice.random() < 0.3:
                changes.delete(key)
            else:
                changes.set(key, dice.randbytes(dice.choice((10, 300, 1500, 9000))))
        changes.execute()


def content(folder: Path) -> dict[bytes, bytes | None]:
    with rlite_pubsub.Redis(str(folder)) as client:
        return {key: client.get(key) for key in client.keys("*")}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_copied_while_others_write_is_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(copying, "STRETCH_PAGES", 8)
    dice = random.Random(seed)
    store, target = tmp_path / "store", BackupTarget(open_place(str(tmp_path / "target"), tmp_path))
    with Store.open(store) as opened, rlite_pubsub.Redis(str(store)) as client:
        for _ in range(60):
            change(client, dice)
        followed = Trail(opened, lambda: 1)
        shipment = Shipment(target, store, IDENTITY)
        copied = Copying(opened.data.path, followed.standing.meta)
        pieces = []
        for runs in copied.stretches():
            pieces.append(shipment.put_piece(Content(runs)))
            for _ in range(dice.choice((0, 0, 1, 3))):
                change(client, dice)
            if dice.random() < 0.5:
                followed.roll()
            if dice.random() < 0.3 and (cut := followed.cut()) is not None:
                shipment.put_change(cut)
        change(client, dice)
        followed.roll()
        cut = followed.cut()
        assert cut is not None
        shipment.put_change(cut)
        shipment.put_manifest(followed.chain, 0, followed.standing, pieces, set())
        followed.end()
    before = content(store)
    restore(target, tmp_path / "back")
    assert content(tmp_path / "back") == before


def test_page_that_is_changed_again_and_again_is_brought_away_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as opened, rlite_pubsub.Redis(str(tmp_path / "store")) as client:
        client.set("n", 0)
        followed = Trail(opened, lambda: 1)
        sizes = []
        for number in range(60):
            client.set("n", number)
            opened.data.sync()
            followed.roll()
            sizes.append(followed.gathered_bytes)
        assert sizes[-1] < sizes[0] * 15, "pages that are freed are used again, and gathered in the place of what was"
        assert followed.cut() is not None and followed.gathered_bytes == 0
        assert followed.cut() is None
        followed.end()


def test_trail_of_too_much_is_lost_and_holds_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "MOST_PAGES", 20)
    with Store.open(tmp_path / "store") as opened, rlite_pubsub.Redis(str(tmp_path / "store")) as client:
        client.set("n", 0)
        followed = Trail(opened, lambda: 1)
        client.mset({f"k{number}": os.urandom(500) for number in range(500)})
        with pytest.raises(TrailLost):
            followed.roll()
        opened.data.sync()
        assert opened.data.safety.let_go()
        assert not opened.data.account.readers()


def test_rolled_trail_pins_the_last_commit_and_no_other(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as opened, rlite_pubsub.Redis(str(tmp_path / "store")) as client:
        client.set("n", 0)
        followed = Trail(opened, lambda: 1)
        client.set("n", 1)
        assert followed.commits > 0
        followed.roll()
        assert followed.commits == 0
        opened.data.sync()
        assert opened.data.safety.let_go()
        assert [reader.transaction for reader in opened.data.account.readers()] == [opened.data.last_commit()]
        followed.end()
        assert not opened.data.account.readers()
