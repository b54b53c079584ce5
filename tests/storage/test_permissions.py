"""A store is its owner's alone, or its group's: two users of one group can share it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlite_pubsub import permissions
from rlite_pubsub.storage.store import Store

ONE, OTHER, GROUP, STRANGERS = 54321, 54322, 54320, 54329


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Which takes the group's right to write from every new file."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}


def test_store_is_its_owners_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        store.data.write(lambda txn: txn.put(b"k", b"v"))
        found = modes(tmp_path / "store")

    assert {name for name, mode in found.items() if mode & 0o077} == set()


def test_folder_that_others_of_its_group_may_write_to_by_chance_is_no_groups_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o775)  # as mkdir makes it where the umask is 002
    Store.open(folder).close()

    found = modes(folder)
    assert not any(mode & 0o077 for name, mode in found.items() if name != "store")


def test_everything_in_a_groups_folder_is_the_groups(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o2770)
    Store.open(folder).close()

    found = modes(folder)
    assert found.pop("store") == found.pop("subscribers") == 0o2770
    assert len(found) > 4 and set(found.values()) == {0o660}


def test_store_that_was_its_owners_is_given_to_the_group_whole(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    Store.open(folder).close()
    Store.open(folder, for_group=True).close()

    assert not any(mode & 0o007 or not mode & 0o060 for mode in modes(folder).values())
    assert permissions.is_groups(folder)


# -- two real users

USER = """
import os, sys, tempfile
import rlite_pubsub
uid, gid = int(sys.argv[1]), int(sys.argv[2])
with tempfile.TemporaryDirectory() as own:
    with rlite_pubsub.Redis(own + "/store") as warm:  # all modules are loaded: they may be where only root may read
        bus = warm.pubsub()
        bus.subscribe("news")
        bus.get_message(timeout=30)
        warm.publish("news", "x")
        bus.get_message(timeout=30)
        warm.rpush("line", 1)
        warm.lrange("line", 0, -1), warm.blpop("line", 1), warm.xadd("topic", {"by": 1}), warm.pubsub_numsub("news")
        warm.set("k", "v")
        bus.close()
os.setgroups([]); os.setgid(gid); os.setuid(uid); os.umask(0o022)
store = rlite_pubsub.Redis(sys.argv[3])
"""
HEARS = """
bus = store.pubsub()
bus.subscribe("news")
assert bus.get_message(timeout=30)["type"] == "subscribe"
store.rpush("line", os.getuid())
print("ready", flush=True)
while (message := bus.get_message(timeout=60)) is not None and message["type"] != "message":
    pass
print("heard", message["data"].decode(), flush=True)
store.rpush("line", "end")
sys.stdin.read()
"""
SAYS = """
print(store.lrange("line", 0, -1), store.blpop("line", 30))
assert store.publish("news", f"from {os.getuid()}") == 1
store.xadd("topic", {"by": os.getuid()})
"""


def as_user(uid: int, gid: int, script: str, folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", USER + script, str(uid), str(gid), str(folder)]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
    )


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of the group, below folders that everybody may pass."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        folder = Path(place, "store")
        folder.mkdir()
        os.chown(folder, ONE, GROUP)
        yield folder


def test_two_users_of_one_group_share_a_store(shared: Path) -> None:
    os.chmod(shared, 0o2770)
    with as_user(ONE, GROUP, HEARS, shared) as hears:
        assert hears.stdout is not None and hears.stdin is not None
        assert hears.stdout.readline() == "ready\n"
        with as_user(OTHER, GROUP, SAYS, shared) as says:
            told, _ = says.communicate(timeout=60)
        assert says.returncode == 0, told
        assert told == f"[b'{ONE}'] (b'line', b'{ONE}')\n"
        assert hears.stdout.readline() == f"heard from {OTHER}\n"
        hears.stdin.close()
        assert hears.wait(60) == 0
    assert {path.stat().st_gid for path in shared.rglob("*")} == {GROUP}
    assert {path.stat().st_uid for path in shared.rglob("*")} <= {ONE, OTHER}


def test_one_that_died_is_cleaned_up_after_by_the_other(shared: Path) -> None:
    os.chmod(shared, 0o2770)
    with as_user(ONE, GROUP, HEARS, shared) as hears:
        assert hears.stdout is not None
        assert hears.stdout.readline() == "ready\n"
        assert len(list((shared / "subscribers").iterdir())) == 2
        hears.kill()
        hears.wait()
        says = as_user(OTHER, GROUP, 'store.publish("news", "x"); print(store.pubsub_numsub("news"))', shared)
        told, _ = says.communicate(timeout=60)
    assert told == "[(b'news', 0)]\n"
    assert list((shared / "subscribers").iterdir()) == []


def test_a_stranger_gets_into_neither(shared: Path) -> None:
    for mode in (0o2770, 0o700):
        os.chmod(shared, mode)
        stranger = as_user(OTHER, STRANGERS, 'store.set("k", "v")', shared)
        told, _ = stranger.communicate(timeout=60)
        assert stranger.returncode != 0 and "Permission denied" in told
