"""A program that only listens does chores for its store now and then, as a server does: it removes keys whose time is
over. Law 10 holds for those, too."""

from __future__ import annotations

from patience import until
from server_process import Serve

from rlite_pubsub.storage.store import Store
from tests.faults.program import Start

LISTENS = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub()
pubsub.subscribe("news")
say(pubsub.get_message(timeout=PATIENCE_S)["type"])
while True:
    pubsub.get_message(timeout=0.05)
"""
KEYS = 300


def test_program_that_removes_keys_whose_time_is_over_keeps_no_page_of_the_store(serve: Serve, start: Start) -> None:
    server = serve("--appendfsync", "no")
    program = start(LISTENS, folder=server.store_folder)
    assert program.hear() == "subscribe"
    with server.connect() as peer:
        peer.do("SET", "lasts", "x")
        for number in range(KEYS):
            peer.do("SET", f"key:{number}", "x", "PX", 1500)
    server.process.kill()
    with Store.open(server.store_folder) as store:

        def removed() -> bool:
            return store.data.read(lambda txn: txn.stat()["entries"]) < KEYS

        until(removed, "the program does it")
        for _ in range(3):
            store.data.write(lambda txn: txn.put(b"\xfftest", b"x"))
        until(lambda: program.pid not in [reader.pid for reader in store.data.account.readers()], "it keeps nothing")
