"""`topics.publish` to a folder, call by call: the store stays open for a moment, and nobody is the worse for it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
from pathlib import Path

import pytest
from other_process import OtherProcess
from patience import until
from stopped_writer import StoppedWriter

import rlite_pubsub
from rlite_pubsub import topics
from rlite_pubsub.embedded import host, lingering


def kept(folder: Path) -> list[host.Host]:
    """What keeps the store open here: nothing, or one. Other tests' stores may be open, too."""
    return [each for store, each in host._hosts.items() if str(store.folder) == str(folder)]


def entries(folder: Path) -> list[bytes]:
    with rlite_pubsub.Redis(folder) as client:
        return [fields[b"n"] for _, fields in client.xrange("t")]


@pytest.mark.parametrize("form", ["{}", "rlite://{}"])
def test_the_store_stays_open_for_the_next_call_and_is_closed_once_it_is_idle(tmp_path: Path, form: str) -> None:
    where = form.format(tmp_path)
    topics.publish(where, "t", {"n": 0})
    [first] = kept(tmp_path)
    for number in range(1, 5):
        topics.publish(where, "t", {"n": number})
    assert kept(tmp_path) == [first]
    until(lambda: not kept(tmp_path), "the end of the idle store")
    until(lambda: lingering._thread is None, "the end of its thread")
    assert entries(tmp_path) == [b"0", b"1", b"2", b"3", b"4"]


async def test_with_an_event_loop_too(tmp_path: Path) -> None:
    await topics.aio.publish(tmp_path, "t", {"n": 0})
    [first] = kept(tmp_path)
    await topics.aio.publish(tmp_path, "t", {"n": 1})
    assert kept(tmp_path) == [first]
    assert entries(tmp_path) == [b"0", b"1"]


def test_a_folder_that_was_made_anew_is_the_one_that_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    topics.publish(folder, "t", {"n": 0})
    shutil.rmtree(folder)
    topics.publish(folder, "t", {"n": 1})
    assert entries(folder) == [b"1"]
    os.rename(folder, tmp_path / "moved")
    with OtherProcess(folder, "rlite_pubsub.Redis(folder).xadd('t', {'n': 2}); say('made')") as other:
        assert other.hear() == "made"
    topics.publish(folder, "t", {"n": 3})
    assert entries(folder) == [b"2", b"3"]
    assert entries(tmp_path / "moved") == [b"1"]


def test_who_opens_it_with_other_options_meanwhile_is_not_refused(tmp_path: Path) -> None:
    topics.publish(tmp_path, "t", {"n": 0})
    topics.publish(tmp_path, "t", {"n": 1}, appendfsync="always", decode_responses=True)
    with rlite_pubsub.Redis(tmp_path, appendfsync="no") as client:
        assert client.xlen("t") == 2
        with pytest.raises(rlite_pubsub.StoreUnavailable):
            topics.publish(tmp_path, "t", {"n": 2}, appendfsync="always")
        topics.publish(tmp_path, "t", {"n": 2})
    assert entries(tmp_path) == [b"0", b"1", b"2"]


def test_threads_share_it_and_a_slow_call_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "IDLE_S", 0.05)
    topics.publish(tmp_path, "t", {"n": 0})
    with StoppedWriter(tmp_path) as writer:
        threads = [threading.Thread(target=topics.publish, args=(tmp_path, "t", {"n": n})) for n in range(1, 6)]
        for thread in threads:
            thread.start()
        threads[0].join(0.5)
        assert threads[0].is_alive(), "it waits for the writer"
        writer.go_on()
        for thread in threads:
            thread.join()
    assert sorted(entries(tmp_path)) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def _publish_in_child(folder: Path) -> None:
    topics.publish(folder, "t", {"n": "child"})


def test_a_forked_child_opens_it_by_itself(tmp_path: Path) -> None:
    topics.publish(tmp_path, "t", {"n": 0})
    child = multiprocessing.get_context("fork").Process(target=_publish_in_child, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == 0
    topics.publish(tmp_path, "t", {"n": 1})
    assert entries(tmp_path) == [b"0", b"child", b"1"]


def test_the_end_of_the_program_closes_it(tmp_path: Path) -> None:
    with OtherProcess(tmp_path, "from rlite_pubsub import topics; topics.publish(folder, 't', {'n': 1})") as other:
        assert other.end() == 0
    assert entries(tmp_path) == [b"1"]
    assert list((tmp_path / "subscribers").iterdir()) == []
