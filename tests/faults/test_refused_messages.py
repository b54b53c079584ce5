"""What is refused nobody has heard, and what somebody may have heard is not refused as if it had not been executed.

Another process takes live.mdb's writer lock again and again, each time for longer than a loop waits: so a publisher
that has asked whether it can write may find, an instant later, that it can't.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from http_server import HttpServer
from peer import Peer, request
from server_process import Serve, ServerProcess

from tests.faults.program import Start

COUNT = 40
CHANNEL = "news"
PUBLISH = ("PUBLISH", CHANNEL)
LAST = "last"
_SEIZING = """
import sys, time
from rlite_pubsub.storage.store import Store

with Store.open(sys.argv[1]) as store:
    print("open", flush=True)
    while True:
        store.live.guard(lambda txn: time.sleep(float(sys.argv[2])))
        time.sleep(0.001)
"""


@contextmanager
def seizing(folder: Path, seconds: float = 0.015) -> Iterator[None]:
    """A process that has the lock of live.mdb for so long again and again, and lets it go for an instant."""
    words = [sys.executable, "-c", _SEIZING, str(folder), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"open\n"
            yield
        finally:
            process.kill()


Answers = Mapping[str, str]
"""What was answered, by message; empty: it is published."""
Publish = Callable[[ServerProcess, list[str]], Answers]


def _asked_each(server: ServerProcess, ask: Callable[[Peer, str], object], messages: list[str]) -> Answers:
    with server.connect() as peer:
        return {message: _refusal(ask(peer, message)) for message in messages}


def _refusal(reply: object) -> str:
    return str(reply) if isinstance(reply, Exception) else ""


def one_by_one(server: ServerProcess, messages: list[str]) -> Answers:
    return _asked_each(server, lambda peer, message: peer.do("PUBLISH", CHANNEL, message), messages)


def to_a_shard(server: ServerProcess, messages: list[str]) -> Answers:
    return _asked_each(server, lambda peer, message: peer.do("SPUBLISH", CHANNEL, message), messages)


def behind_a_write(server: ServerProcess, messages: list[str]) -> Answers:
    """In the turn of something else, so that it goes the long way."""

    def ask(peer: Peer, message: str) -> object:
        peer.send(request("SET", "key", message) + request("CLIENT", "ID") + request("PUBLISH", CHANNEL, message))
        return [peer.reply() for _ in range(3)][2]

    return _asked_each(server, ask, messages)


def in_transactions(server: ServerProcess, messages: list[str]) -> Answers:
    def ask(peer: Peer, message: str) -> object:
        peer.send(request("MULTI") + request("SET", "key", message) + request("PUBLISH", CHANNEL, message))
        peer.send(request("EXEC"))
        reply = [peer.reply() for _ in range(4)][3]
        return reply[1] if isinstance(reply, list) else reply

    return _asked_each(server, ask, messages)


def in_scripts(server: ServerProcess, messages: list[str]) -> Answers:
    script = "return redis.call('PUBLISH', ARGV[1], ARGV[2])"
    return _asked_each(server, lambda peer, message: peer.do("EVAL", script, 0, CHANNEL, message), messages)


def in_a_pipeline(server: ServerProcess, messages: list[str]) -> Answers:
    with server.connect() as peer:
        answers: dict[str, str] = {}
        for at in range(0, len(messages), 3):
            batch = messages[at : at + 3]
            peer.send(b"".join(request("PUBLISH", CHANNEL, message) for message in batch))
            answers |= {message: _refusal(peer.reply()) for message in batch}
        return answers


def over_http(server: ServerProcess, messages: list[str]) -> Answers:
    assert isinstance(server, HttpServer)
    replies = [server.ask("POST", f"/api/channels/{CHANNEL}", message.encode()) for message in messages]
    return {
        message: "" if status == 200 else json.loads(answer)["detail"]
        for message, (status, _, answer) in zip(messages, replies, strict=True)
    }


WAYS: list[Publish] = [one_by_one, to_a_shard, behind_a_write, in_transactions, in_scripts, in_a_pipeline, over_http]


class Listener:
    """Who hears what is said to the channel, until the last."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        peer.do("SUBSCRIBE", CHANNEL)
        peer.do("SSUBSCRIBE", CHANNEL)

    def heard(self) -> list[str]:
        messages = iter(lambda: self._peer.reply()[2].decode(), LAST)
        return list(messages)


def judge(answers: Answers, heard: list[list[str]]) -> None:
    for message, refusal in answers.items():
        times = [each.count(message) for each in heard]
        if not refusal:
            assert times == [1] * len(heard), f"{message} is published"
        elif not refusal.startswith("PARTIAL"):
            assert not any(times), f"{message}: {refusal}"


ELSEWHERE = """
with rlite_pubsub.Redis(folder) as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
    pubsub.subscribe("news")
    pubsub.ssubscribe("news")
    pubsub.get_message(timeout=PATIENCE_S)
    say("subscribed")
    heard = []
    while not heard or heard[-1] != "last":
        message = pubsub.get_message(timeout=PATIENCE_S)
        if message:
            heard.append(message["data"].decode())
    say(*heard[:-1])
"""


@pytest.mark.parametrize("publish", WAYS, ids=lambda way: way.__name__)
def test_refused_message_is_not_heard(publish: Publish, serve_http: Callable[..., HttpServer], start: Start) -> None:
    server = serve_http("--writer-patience", "1")
    with server.connect() as here, server.connect() as lasting:
        lasting.do("CLIENT", "SETNAME", "durable:lasting")
        listeners = [Listener(here), Listener(lasting)]
        elsewhere = start(ELSEWHERE, folder=server.store_folder)
        assert elsewhere.hear() == "subscribed"
        with seizing(server.store_folder):
            answers = publish(server, [f"message-{number}" for number in range(COUNT)])
        with server.connect() as last:
            last.do("PUBLISH", CHANNEL, LAST)
        judge(answers, [*[each.heard() for each in listeners], elsewhere.hear().split()])


HERE = """
from redis.exceptions import RedisError
client = rlite_pubsub.Redis(folder)
client.config_set("writer-patience", 1)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
say("subscribed")
told()
for number in range(40):
    try:
        if number % 2:
            client.publish("news", f"message-{number}")
        else:
            with client.pipeline(transaction=False) as pipeline:
                pipeline.publish("news", f"message-{number}")
                pipeline.execute()
        say("")
    except RedisError as failure:
        say(failure)
told()
client.publish("news", "last")
heard = []
while not heard or heard[-1] != b"last":
    message = pubsub.get_message(timeout=PATIENCE_S)
    heard += [message["data"]] if message else []
say(*heard[:-1])
"""


def test_message_that_a_program_was_refused_is_not_heard(folder: Path, start: Start) -> None:
    program = start(HERE)
    assert program.hear() == "subscribed"
    elsewhere = start(ELSEWHERE)
    assert elsewhere.hear() == "subscribed"
    with seizing(folder):
        program.tell("")
        answers = {f"message-{number}": program.hear() for number in range(COUNT)}
    program.tell("")
    heard = elsewhere.hear().split()
    judge(answers, [program.hear().split(), heard])


@pytest.mark.parametrize("command", ["PUBLISH", "SPUBLISH"])
def test_message_is_published_where_keys_of_its_turn_are_refused(command: str, serve: Serve) -> None:
    server = serve("--store-quota", "1mb")
    with server.connect() as listener, server.connect() as peer:
        heard = Listener(listener)
        peer.send(request("MULTI") + request("SET", "key", b"x" * (8 << 20)) + request(command, CHANNEL, "one"))
        peer.send(request("EXEC") + request(command, CHANNEL, LAST))
        *_, replies, last = [peer.reply() for _ in range(5)]
        assert isinstance(replies, list) and "OOM" in str(replies[0])
        assert (replies[1], last) == (1, 1)
        assert heard.heard() == ["one"]


def test_message_that_is_heard_and_not_retained_is_said_to_be_so(serve: Serve) -> None:
    server = serve("--store-quota", "1mb")
    with server.connect() as listener, server.connect() as peer:
        heard = Listener(listener)
        assert peer.do("CONFIG", "SET", "retain", f"{CHANNEL} 7d") == b"OK"
        peer.send(request("MULTI") + request(*PUBLISH, "one") + request("SET", "key", b"x" * (8 << 20)))
        peer.send(request("EXEC"))
        *_, replies = [peer.reply() for _ in range(4)]
        assert isinstance(replies, list)
        assert str(replies[0]).startswith("PARTIAL")
        assert "OOM" in str(replies[1])
        peer.do("CONFIG", "SET", "retain", "")
        peer.do(*PUBLISH, LAST)
        assert heard.heard() == ["one"]
