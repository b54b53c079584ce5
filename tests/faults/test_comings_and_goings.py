"""Subscribers come and go, and publishers stay: whatever a process remembers of another one goes with it.

RLITE_COMINGS is how many subscribers come and go (45). Each is killed, or closes, or ends without closing; and then it
comes again. What a publish costs is counted, not timed: its commits, its reads and writes, and whether it looks for
dead ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from patience import until
from server_process import Serve

from rlite_pubsub.pubsub.post import LOOK_AGAIN_NS
from rlite_pubsub.pubsub.reaping import reap_dead
from rlite_pubsub.storage.store import Store
from tests.faults.program import Program, Start
from tests.soak.left import left_in

COMINGS = int(os.environ.get("RLITE_COMINGS", "45"))
MEASURED = 150
LOOKS_AGAIN_S = 2 * LOOK_AGAIN_NS / 1e9
"""A publisher that waits for so long between two messages looks each time whether anybody has died."""

SUBSCRIBERS = """
import signal
import rlite_pubsub.embedded.service  # once, and not in each child

def live(how):
    begin = rlite_pubsub.Redis(folder)
    pubsub = begin.pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("n*s") if how == "closed" else None
    pubsub.get_message(timeout=PATIENCE_S)
    say("up")
    while pubsub.get_message(timeout=PATIENCE_S)["data"] != b"go":
        pass
    if how == "stays":
        say("heard")
        while True:
            pubsub.get_message(timeout=PATIENCE_S)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "closed":
        pubsub.close()
        begin.close()
    os._exit(0)

while how := told():
    child = os.fork()
    if child == 0:
        live(how)
    if how != "stays":
        os.waitpid(child, 0)
        say("gone")
    else:
        stays = child
os.kill(stays, signal.SIGKILL)
os.waitpid(stays, 0)
say("all gone")
"""
PUBLISHER = """
import time
client = rlite_pubsub.Redis(folder)
while words := told():
    word, count = words.split()
    for _ in range(int(count)):
        receivers = client.publish("news", word)
        time.sleep(LOOKS_AGAIN_S)
    say(receivers)
client.close()
say("closed")
"""


class Cost:
    """What a publisher's process has and does."""

    def __init__(self, pid: int, store: Store, publish: Callable[[], object]) -> None:
        folder = store.subscribers_folder
        before = self._calls(pid), store.live.last_commit(), os.stat(folder).st_mtime_ns
        publish()
        self.calls = self._calls(pid) - before[0]
        self.commits = store.live.last_commit() - before[1]
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        self.files = len(os.listdir(folder))
        self.looks_for_the_dead = os.stat(folder).st_mtime_ns != before[2]  # each makes a lock file, and removes it

    @staticmethod
    def _calls(pid: int) -> int:
        said = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        return int(said["syscr"]) + int(said["syscw"])

    def __repr__(self) -> str:
        return f"{vars(self)}"


def say(publisher: Program, word: str, count: int = 1) -> int:
    """Publish so often; how many have received the last."""
    publisher.tell(f"{word} {count}")
    return int(publisher.hear())


def test_whoever_has_come_and_gone_costs_those_who_publish_nothing(serve: Serve, start: Start, folder: Path) -> None:
    server = serve()
    through_server = server.connect()
    publishes = f"LOOKS_AGAIN_S = {LOOKS_AGAIN_S}\n{PUBLISHER}"
    program, rival, subscribers = start(publishes), start(publishes), start(SUBSCRIBERS)
    subscribers.tell("stays")
    assert subscribers.hear() == "up"
    say(program, "go")
    assert subscribers.hear() == "heard"

    def by_server(word: str, count: int = 1) -> int:
        for _ in range(count):
            receivers = int(through_server.do("PUBLISH", "news", word))
            time.sleep(LOOKS_AGAIN_S)
        return receivers

    def costs(store: Store) -> list[Cost]:
        say(program, "warm", 5)
        by_server("warm", 5)
        return [
            Cost(program.pid, store, lambda: say(program, "measured", MEASURED)),
            Cost(server.pid, store, lambda: by_server("measured", MEASURED)),
        ]

    with Store.open(folder) as store:
        before = costs(store)
        for number in range(COMINGS):
            how = ("killed", "closed", "ended")[number % 3]
            subscribers.tell(how)
            assert subscribers.hear() == "up"
            there = 3 if how == "closed" else 2
            assert (by_server("hear"), say(program, "hear")) == (there, there)
            say(rival, "go")
            assert subscribers.hear() == "gone"
            until(lambda: say(rival, "who") == 1, "the death of a subscriber")
        after = costs(store)
    for was, now in zip(before, after, strict=True):
        told = f"before: {was}, after {COMINGS} have gone: {now}"
        assert now.commits <= 1.5 * was.commits + 20, told
        assert now.calls <= 1.5 * was.calls + 20, told
        assert now.descriptors <= was.descriptors + 1, told
        assert (now.files, now.looks_for_the_dead) == (was.files, False), told
    for publisher in (program, rival):
        publisher.tell()
        assert publisher.hear() == "closed"
        assert (publisher.end(), publisher.errors()) == (0, "")  # that somebody has died is no fault of a publisher
    subscribers.tell()
    assert subscribers.hear() == "all gone"
    server.end()
    with Store.open(folder) as store:
        reap_dead(store)  # the last one
    assert left_in(folder) == []
