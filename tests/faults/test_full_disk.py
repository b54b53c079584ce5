"""A disk that is full while programs without a server publish more than mailboxes can make way for: an error, nothing
half-written, and no grudge. What they make way for is in test_full_disk_mailboxes.py."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlite_pubsub
from tests.faults.program import Start
from tests.server.disk import fill
from tests.server.server_process import Serve
from tests.soak.left import left_in

SMALL, LARGE = 2000, 4_000_000
NAPPER = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
say("naps")
told()
while True:
    message = pubsub.get_message(timeout=PATIENCE_S)
    say(message["data"][:10])
    if message["data"].startswith(b"last"):
        break
pubsub.close()
client.close()
"""
PUBLISHER = """
client = rlite_pubsub.Redis(folder)
client.publish("others", "")
while True:
    channel, size, form = told().split()
    said = []
    payload = size.ljust(10) + "x" * int(size)
    try:
        if form == "alone":
            said.append(client.publish(channel, payload))
        else:
            with client.pipeline(transaction=form == "transaction") as pipe:
                said.extend(pipe.publish(channel, payload).publish(channel, payload).execute())
    except Exception as error:
        said.append(f"{type(error).__name__} {error}")
    say(len(said) - 1, said[-1])
"""


@pytest.mark.parametrize("form", ["alone", "pipeline", "transaction"])
def test_publishing_on_a_full_disk_is_an_error_half_of_nothing_arrives_and_it_works_again_when_there_is_room(
    tiny_disk: Path, start: Start, form: str
) -> None:
    folder = tiny_disk / "store"
    reader, publisher = start(NAPPER, folder=folder), start(PUBLISHER, folder=folder)
    assert reader.hear() == "naps"
    accepted = {"alone": "0 1"}.get(form, "1 1")
    publisher.tell(f"news {SMALL} {form}")
    assert publisher.hear() == accepted
    ballast = fill(tiny_disk)
    for _ in range(2):
        publisher.tell(f"news {LARGE} {form}")
        told = publisher.hear()
        assert told.endswith("No space left on device") and str(folder) in told
        publisher.tell(f"others {LARGE} {form}")
        assert publisher.hear().endswith(" 0"), "a message to nobody needs no room"
    publisher.tell(f"news {SMALL} {form}")
    assert publisher.hear() == accepted
    ballast.unlink()
    publisher.tell(f"news {LARGE} {form}")
    assert publisher.hear() == accepted
    with rlite_pubsub.Redis(folder) as client:
        assert client.publish("news", "last") == 1
    reader.tell("wake up")
    copies = 1 if form == "alone" else 2
    expected = [str(size) for size in (SMALL, SMALL, LARGE) for _ in range(copies)]
    assert [reader.hear().strip() for _ in range(len(expected) + 1)] == [*expected, "last"]
    assert reader.end() == 0
    publisher.kill()
    assert left_in(folder) == []


def test_subscribing_on_a_full_disk_is_an_error_and_works_again_when_there_is_room(
    tiny_disk: Path, start: Start
) -> None:
    folder = tiny_disk / "store"
    program = start(
        """
        client = rlite_pubsub.Redis(folder)
        names = [f"{number:0500}" for number in range(5000)]
        client.publish("others", "")
        say("open")
        for _ in range(2):
            pubsub = client.pubsub()
            say("ready", told())
            try:
                pubsub.subscribe(*names)
                say([pubsub.get_message(timeout=PATIENCE_S) for _ in names][-1]["data"])
            except Exception as error:
                say(error)
            pubsub.close()
        client.close()
        """,
        folder=folder,
    )
    assert program.hear() == "open"
    ballast = fill(tiny_disk)
    program.tell("1")
    assert program.hear() == "ready 1"
    assert program.hear().endswith("No space left on device")
    ballast.unlink()
    program.tell("2")
    assert [program.hear(), program.hear()] == ["ready 2", "5000"]
    assert program.end() == 0
    assert left_in(folder) == []


def test_opening_a_store_on_a_full_disk_is_an_error_and_leaves_what_the_next_one_can_open(
    tiny_disk: Path, start: Start
) -> None:
    folder = tiny_disk / "store"
    source = """
    try:
        with rlite_pubsub.Redis(folder) as client:
            say(client.publish("news", "x"))
    except Exception as error:
        say(error)
    """
    ballast = fill(tiny_disk)
    assert start(source, folder=folder).hear().endswith("No space left on device")
    ballast.unlink()
    assert start(source, folder=folder).hear() == "0"
    assert left_in(folder) == []


def test_publishing_to_a_durable_subscriber_on_a_full_disk_is_an_error_and_none_of_it_arrives(
    tiny_disk: Path, start: Start, serve: Serve
) -> None:
    folder = tiny_disk / "store"
    server = serve(store_folder=folder)
    with server.connect() as peer:
        peer.do("CLIENT", "SETNAME", "durable:away")
        peer.do("SUBSCRIBE", "news")
    publisher = start(PUBLISHER, folder=folder)
    ballast = fill(tiny_disk)
    publisher.tell(f"news {LARGE} alone")
    assert publisher.hear().endswith("No space left on device")
    publisher.tell(f"news {SMALL} alone")
    assert publisher.hear() == "0 1"
    ballast.unlink()
    publisher.tell(f"news {LARGE} alone")
    assert publisher.hear() == "0 1"
    with server.connect() as peer:
        peer.do("CLIENT", "SETNAME", "durable:away")
        peer.do("SUBSCRIBE", "news")
        assert [int(peer.reply()[2][:10]) for _ in range(2)] == [SMALL, LARGE]
