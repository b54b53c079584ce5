"""What is published among other things: in a transaction, in a script, behind a change of keys. It leaves behind the
commit of these keys and is not refused half-way; what is refused though it is heard is said to be so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until
from peer import Peer, request
from server_process import Serve, ServerProcess

from tests.faults.program import Start
from tests.faults.test_refused_messages import CHANNEL, COUNT, ELSEWHERE, LAST, Listener, judge, seizing

LONG_S = 0.3
"""Longer than a loop would wait for another process."""
TOO_LARGE = b"x" * (8 << 20)
SETS = "redis.call('SET', 'key', ARGV[1]);"
PUBLISHES = "redis.call('PUBLISH', 'news', ARGV[1]);"
LIBRARY = "#!lua name=lib\nredis.register_function('both', function(keys, ARGV) %s %s return 1 end)"

Say = Callable[[Peer, bytes | str], Any]
"""Sets the key to a value, and publishes that; what is answered in the end."""


def in_a_pipeline(peer: Peer, value: bytes | str) -> Any:
    peer.send(request("SET", "key", value) + request("PUBLISH", CHANNEL, value))
    return [peer.reply() for _ in range(2)][-1]


def in_a_transaction(peer: Peer, value: bytes | str) -> Any:
    peer.send(request("MULTI") + request("SET", "key", value) + request("PUBLISH", CHANNEL, value) + request("EXEC"))
    return [peer.reply() for _ in range(4)][-1][-1]


def in_a_script(peer: Peer, value: bytes | str) -> Any:
    return peer.do("EVAL", f"{SETS} {PUBLISHES} return 1", 0, value)


def in_scripts_of_a_pipeline(peer: Peer, value: bytes | str) -> Any:
    script = request("EVAL", f"{SETS} {PUBLISHES} return 1", 0, value)
    peer.send(request("EVAL", "return {1}", 0) + script + request("EVAL", "return {2}", 0))
    first, answer, last = [peer.reply() for _ in range(3)]
    assert (first, last) == ([1], [2])
    return answer


def in_a_script_of_a_transaction(peer: Peer, value: bytes | str) -> Any:
    peer.send(request("MULTI") + request("EVAL", f"{SETS} {PUBLISHES} return 1", 0, value) + request("EXEC"))
    return [peer.reply() for _ in range(3)][-1][-1]


def in_a_function(peer: Peer, value: bytes | str) -> Any:
    peer.do("FUNCTION", "LOAD", "REPLACE", LIBRARY % (SETS, PUBLISHES))
    return peer.do("FCALL", "both", 0, value)


WHOLES: list[Say] = [
    in_a_transaction, in_a_script, in_scripts_of_a_pipeline, in_a_script_of_a_transaction, in_a_function
]  # fmt: skip


def named(way: Say) -> str:
    return way.__name__


# -- behind the commit of the keys


@pytest.mark.parametrize("say", [in_a_pipeline, *WHOLES], ids=named)
def test_who_hears_of_a_change_can_read_it(say: Say, serve: Serve, tmp_path: Path) -> None:
    """However soon the publisher dies once its message is with another process."""
    server = serve(environment={"RLITE_FAILPOINT": "publish-rung"})
    other = serve(folder=tmp_path / "other", store_folder=server.store_folder)
    with redis.Redis(port=other.port) as reader, reader.pubsub() as pubsub, server.connect() as peer:
        pubsub.subscribe(CHANNEL)
        assert pubsub.get_message(timeout=PATIENCE_S) is not None
        with pytest.raises(ConnectionError):
            say(peer, "changed")
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None and message["data"] == b"changed"
        assert reader.get("key") == b"changed"


# -- not refused half-way


@pytest.mark.parametrize("say", WHOLES, ids=named)
def test_message_of_what_has_begun_is_not_refused_for_another_process_that_writes(
    say: Say, serve: Serve, start: Start
) -> None:
    """It is at work, though without a processor for a while: it lets the lock go for an instant, and has it again."""
    server = serve()
    with server.connect() as here, server.connect() as peer:
        listener = Listener(here)
        elsewhere = start(ELSEWHERE, folder=server.store_folder)
        assert elsewhere.hear() == "subscribed"
        with seizing(server.store_folder, LONG_S):
            answers = {f"message-{number}": say(peer, f"message-{number}") for number in range(COUNT // 4)}
        assert set(answers.values()) <= {1, 2}, answers
        peer.do("PUBLISH", CHANNEL, LAST)
        judge(dict.fromkeys(answers, ""), [listener.heard(), elsewhere.hear().split()])


SPINS = "local began = os.clock() while os.clock() - began < 1 do end"
HOLDS = """
from rlite_pubsub.storage.store import Store
with Store.open(folder) as store:
    say("open")
    environment = getattr(store, told())
    def hold(txn):
        say("holds")
        told()
    environment.guard(hold)
    say("let go")
"""


def spinning_in_a_transaction(peer: Peer) -> None:
    peer.send(request("MULTI") + request("EVAL", SPINS, 0) + request("PUBLISH", CHANNEL, "one") + request("EXEC"))


def spinning_in_a_script(peer: Peer) -> None:
    peer.send(request("EVAL", f"{SETS} {SPINS} {PUBLISHES} return 1", 0, "one"))


@pytest.mark.parametrize("is_let_go", [True, False])
@pytest.mark.parametrize(
    ("begin", "replies"), [(spinning_in_a_transaction, 4), (spinning_in_a_script, 1)], ids=["transaction", "script"]
)
def test_message_of_what_has_begun_waits_for_who_writes_and_is_said_to_be_heard_here_where_that_is_too_long(
    begin: Callable[[Peer], None], replies: int, is_let_go: bool, serve: Serve, start: Start
) -> None:
    server = serve("--writer-patience", "60" if is_let_go else "1")
    with server.connect() as here, server.connect() as peer:
        listener = Listener(here)
        elsewhere = start(ELSEWHERE, folder=server.store_folder)
        assert elsewhere.hear() == "subscribed"
        holder = start(HOLDS, folder=server.store_folder)
        assert holder.hear() == "open"
        spent_s = _processor_s(server.pid)
        begin(peer)
        until(lambda: _processor_s(server.pid) > spent_s + 0.2, "it has begun")
        holder.tell("live")
        assert holder.hear() == "holds"
        if is_let_go:
            until(lambda: _is_known_to_be_held(server), "the server has met it")
            holder.tell("")
        answer = [peer.reply() for _ in range(replies)][-1]
        answer = answer[-1] if isinstance(answer, list) else answer
        if not is_let_go:
            holder.tell("")
        assert holder.hear() == "let go"
        peer.do("PUBLISH", CHANNEL, LAST)
        assert listener.heard() == ["one"]
        if is_let_go:
            assert answer in (1, 2)
            assert elsewhere.hear() == "one"
        else:
            assert str(answer).startswith("PARTIAL"), answer
            assert elsewhere.hear() == ""


def _is_known_to_be_held(server: ServerProcess) -> bool:
    with server.connect() as asking:
        return b"writer_of_live:pid=" in asking.do("INFO", "everything")


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- refused, and heard


def _refused(server: ServerProcess, ask: Callable[[Peer], Any]) -> tuple[Any, list[str]]:
    """What is answered, and what is heard in the same process."""
    with server.connect() as here, server.connect() as peer:
        listener = Listener(here)
        answer = ask(peer)
        peer.do("PUBLISH", CHANNEL, LAST)
        return answer, listener.heard()


SAYS_AND_SETS = "redis.call('PUBLISH', 'news', 'one'); redis.call('SET', 'key', ARGV[1]); return 1"


@pytest.mark.parametrize(
    "words",
    [("EVAL", SAYS_AND_SETS, 0), ("FCALL", "both", 0)],
    ids=["a script", "a function"],
)
@pytest.mark.parametrize("form", ["alone", "behind others", "in a transaction"])
def test_script_whose_keys_are_refused_is_said_to_be_heard(
    words: tuple[str | int, ...], form: str, serve: Serve
) -> None:
    server = serve("--store-quota", "1mb")

    def ask(peer: Peer) -> Any:
        peer.do("FUNCTION", "LOAD", LIBRARY % ("redis.call('PUBLISH', 'news', 'one');", SETS))
        script = request(*words, TOO_LARGE)
        if form == "alone":
            peer.send(script)
            return peer.reply()
        if form == "behind others":
            peer.send(request("EVAL", "return 1", 0) + script + request("EVAL", "return 2", 0))
            return [peer.reply() for _ in range(3)][1]
        peer.send(request("MULTI") + script + request("EXEC"))
        return [peer.reply() for _ in range(3)][-1][0]

    answer, heard = _refused(server, ask)
    assert heard == ["one"]
    assert str(answer).startswith("PARTIAL some receivers may have the message"), answer
    assert "full" in str(answer)


def test_script_that_says_nothing_and_whose_keys_are_refused_is_refused_as_before(serve: Serve) -> None:
    server = serve("--store-quota", "1mb")
    script = "redis.call('PUBLISH', 'unheard', 'one'); redis.call('SET', 'key', ARGV[1]); return 1"
    answer, heard = _refused(server, lambda peer: peer.do("EVAL", script, 0, TOO_LARGE))
    assert heard == []
    assert str(answer).startswith("OOM")


SAYS = """
client = rlite_pubsub.Redis(folder, store_quota=1 << 20)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
try:
    client.eval("redis.call('PUBLISH', 'news', 'one'); redis.call('SET', 'key', ARGV[1])", 0, b"x" * (8 << 20))
except Exception as refusal:
    say(refusal)
say(pubsub.get_message(timeout=PATIENCE_S)["data"])
"""


def test_script_of_a_program_whose_keys_are_refused_is_said_to_be_heard(start: Start) -> None:
    program = start(SAYS)
    assert program.hear().startswith("PARTIAL some receivers may have the message")
    assert program.hear() == "one"
