"""Users of a server: no way of a message is so short that it goes past their rules; and where they come from."""

from __future__ import annotations

from pathlib import Path

import hiredis
import pytest
from peer import Peer, request
from server_process import Serve, ServerProcess

NO_CHANNEL = "NOPERM this user has no permissions to access one of the channels used as arguments"
NO_KEY = "NOPERM this user has no permissions to access one of the keys used as arguments"


def log_in(server: ServerProcess, name: str, *rules: str) -> Peer:
    """A new connection of a user who has these rules."""
    with server.connect() as admin:
        assert admin.do("ACL", "SETUSER", name, "on", "nopass", *rules) == b"OK"
    peer = server.connect()
    assert peer.do("AUTH", name, "x") == b"OK"
    return peer


def refusals(replies: list[object], text: str) -> int:
    return sum(isinstance(reply, hiredis.ReplyError) and str(reply) == text for reply in replies)


@pytest.mark.parametrize("words", [("PUBLISH", "secret"), ("publish", "secret"), ("XADD", "secret", "*", "f")])
def test_a_pipeline_goes_not_past_the_rules(server: ServerProcess, words: tuple[str, ...]) -> None:
    alice = log_in(server, "alice", "+@all", "&open", "~open")
    text = NO_KEY if words[0] == "XADD" else NO_CHANNEL
    for _ in range(3):  # alone, before the parser expects a run
        assert str(alice.do(*words, "v")) == text
    alice.send(b"".join(request(*words, "v") for _ in range(500)))
    assert refusals(alice.replies(500), text) == 500
    assert alice.do("EXISTS", "open") == 0
    alice.close()


@pytest.mark.parametrize(("words", "text"), [(("PUBLISH", "c"), NO_CHANNEL), (("XADD", "c", "*", "f"), NO_KEY)])
def test_rules_that_change_under_a_publisher_hold_from_its_next_pipeline_on(
    server: ServerProcess, words: tuple[str, ...], text: str
) -> None:
    bob, pipeline = log_in(server, "bob", "+@all", "&*", "~*"), b"".join(request(*words, "v") for _ in range(200))
    with server.connect() as admin:
        for _ in range(3):
            assert not isinstance(bob.do(*words, "v"), Exception)
        bob.send(pipeline)
        assert refusals(bob.replies(200), text) == 0
        assert admin.do("ACL", "SETUSER", "bob", "resetchannels", "resetkeys") == b"OK"
        bob.send(pipeline)
        assert refusals(bob.replies(200), text) == 200
        assert admin.do("ACL", "SETUSER", "bob", "&*", "~*") == b"OK"
        bob.send(pipeline)
        assert refusals(bob.replies(200), text) == 0
        assert admin.do("ACL", "SETUSER", "default", "resetchannels", "resetkeys") == b"OK"
        bob.send(pipeline)
        assert refusals(bob.replies(200), text) == 0
        assert isinstance(admin.do(*words, "v"), hiredis.ReplyError)
    bob.close()


def test_a_login_in_the_midst_of_a_pipeline_counts_for_what_follows(server: ServerProcess) -> None:
    log_in(server, "alice", "+@all", "&open").close()
    with server.connect() as peer:
        run = b"".join(request("PUBLISH", "secret", "v") for _ in range(10))
        peer.send(run + request("AUTH", "alice", "x") + run + request("RESET") + run)
        replies = peer.replies(32)
        assert (refusals(replies[:11], NO_CHANNEL), refusals(replies[11:21], NO_CHANNEL)) == (0, 10)
        assert refusals(replies[21:], NO_CHANNEL) == 0


def test_messages_of_a_durable_subscriber_are_given_to_no_other_user(server: ServerProcess) -> None:
    owner = log_in(server, "owner", "+@all", "&*")
    owner.do("SUBSCRIBER.ATTACH", "inbox")
    owner.do("SUBSCRIBE", "secret")
    owner.close()
    with server.connect() as peer:
        peer.do("PUBLISH", "secret", "word")
    alice = log_in(server, "alice", "+@all", "&open", "&durable:inbox")
    assert str(alice.do("SUBSCRIBER.ATTACH", "inbox")) == NO_CHANNEL
    assert alice.do("CLIENT", "SETNAME", "durable:inbox") == b"OK"
    assert str(alice.do("SUBSCRIBE", "open")) == NO_CHANNEL
    alice.close()
    bob = log_in(server, "bob", "+@all", "&open", "&secret")
    assert bob.do("CLIENT", "SETNAME", "durable:inbox") == b"OK"
    assert str(bob.do("SUBSCRIBE", "open")) == NO_CHANNEL
    with server.connect() as peer:
        peer.do("ACL", "SETUSER", "bob", "&durable:*")
    assert bob.do("SUBSCRIBE", "open") == [b"subscribe", b"open", 2]
    assert bob.reply() == [b"message", b"secret", b"word"]
    bob.close()


def test_users_of_the_configuration_are_there_from_the_start(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "more.conf"
    path.write_text("user alice on >secret +ping ~a\nuser default on >admin +@all ~* &*\n")
    server = serve("--include", str(path), "--user", "bob", "+get", "(~b", "+set)")
    with server.connect() as peer:
        assert str(peer.do("PING")).startswith("NOAUTH")
        assert peer.do("AUTH", "alice", "secret") == b"OK"
        assert peer.do("PING") == b"PONG"
        assert str(peer.do("GET", "a")) == "NOPERM this user has no permissions to run the 'get' command"
        assert peer.do("AUTH", "admin") == b"OK"
        lines = peer.do("ACL", "LIST")
        assert lines[1] == b"user bob off resetchannels -@all +get (~b resetchannels -@all +set)"
        assert [line.split()[1] for line in lines] == [b"alice", b"bob", b"default"]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("--user alice +nothing", "Unknown command or category name in ACL"),
        ("--user alice %x", "Syntax error"),
        ("--user alice on --aclfile /nowhere/users.acl", "define either an ACL file or declare users directly"),
        ("--aclfile /nowhere/users.acl", "No such file or directory"),
    ],
)
def test_users_that_cannot_be_end_the_start(serve: Serve, flags: str, why: str) -> None:
    server = serve(*flags.split(), wait=False)
    assert server.exit_code() == 1
    assert why in server.log() + server.output()
