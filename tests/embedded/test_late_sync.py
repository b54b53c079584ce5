"""appendfsync everysec without a server: a thread brings to the disk what was committed, and is there only for that."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from patience import PATIENCE_S, until
from reading import messages

import rlite_pubsub
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.checkpoints import syncing
from rlite_pubsub.storage.checkpoints.checkpoint import saved


def synced(folder: Path) -> int:
    """The last commit of its data.mdb that would survive a power cut."""
    return saved(folder / "data.mdb", boot_id())


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rlite-pubsub-sync"]


def make_durable(folder: Path) -> None:
    with rlite_pubsub.Redis(folder, client_name="durable:d") as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        pubsub.get_message(timeout=PATIENCE_S)


def last_commit(client: rlite_pubsub.Redis) -> int:
    assert client._host is not None
    return client._host.store.data.last_commit()


def test_what_is_published_to_a_durable_subscriber_is_synced_and_the_thread_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "SYNC_SECONDS", 0.02)
    make_durable(folder)
    with rlite_pubsub.Redis(folder) as publisher:
        for _ in range(3):
            publisher.publish("news", "x")
            commit = last_commit(publisher)
            until(lambda commit=commit: synced(folder) >= commit, "a sync")
            until(lambda: not threads(), "the thread's end")


def test_what_a_command_or_a_reader_has_committed_is_synced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "SYNC_SECONDS", 0.02)
    make_durable(folder)
    with (
        rlite_pubsub.Redis(folder) as publisher,
        rlite_pubsub.Redis(folder, client_name="durable:d") as client,
        client.pubsub() as pubsub,
    ):
        pubsub.subscribe("news")
        with publisher.pipeline(transaction=False) as pipe:
            pipe.publish("news", "x").execute()
        assert messages(pubsub, 1) == [b"x"]
        pubsub.get_message()
        publisher.execute_command("SUBSCRIBER.DELETE", "e")
        until(lambda: synced(folder) >= last_commit_of(publisher), "a sync of the last commit")
        until(lambda: not threads(), "the thread's end")


def last_commit_of(client: rlite_pubsub.Redis) -> int:
    client.publish("nobody", "x")
    return last_commit(client)


def test_closing_syncs_what_the_thread_has_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "SYNC_SECONDS", 3600.0)
    make_durable(folder)
    with rlite_pubsub.Redis(folder) as publisher:
        publisher.publish("news", "x")
        commit = last_commit(publisher)
        assert synced(folder) < commit
    assert synced(folder) >= commit
    assert not threads()


@pytest.mark.parametrize("policy", ["no", "everysec", "always"])
def test_a_program_that_writes_no_more_holds_no_page(
    folder: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "SYNC_SECONDS", 0.02)
    with (
        rlite_pubsub.Redis(folder, appendfsync=policy) as publisher,
        rlite_pubsub.Redis(folder, client_name="durable:d") as client,
        client.pubsub() as pubsub,
    ):
        publisher.ping()  # who opens the store first says it
        pubsub.subscribe("news")
        assert publisher.publish("news", "x") == 1
        assert publisher._host is not None
        data = publisher._host.store.data
        assert data.safety.is_pinned
        until(lambda: not data.safety.is_pinned and not data.safety.is_behind and not threads(), "the thread's end")


def test_a_program_without_durable_subscribers_has_no_such_thread(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        for number in range(100):
            client.publish("news", number)
        assert messages(pubsub, 100) == [b"%d" % number for number in range(100)]
        assert not threads()
