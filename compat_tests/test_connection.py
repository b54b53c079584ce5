"""Handshake, client commands and transactions, one connection at a time, to the byte where bytes matter."""

from __future__ import annotations

import re

import pytest
import redis
from patience import PATIENCE_S, until
from redis.backoff import NoBackoff
from redis.retry import Retry

from compat_tests.servers import FakeServer, SocketServer
from compat_tests.wire import Wire, bulk, request


def push(protocol: int, *words: bytes | int) -> bytes:
    """A message or a confirmation."""
    start = b"*" if protocol == 2 else b">"
    body = b"".join([b":%d\r\n" % word if isinstance(word, int) else bulk(word) for word in words])
    return start + b"%d\r\n" % len(words) + body


# -- handshake


def test_hello_tells_of_the_server(server: SocketServer) -> None:
    with server.wire() as wire:
        three = wire.ask(b"HELLO", b"3", b"SETNAME", b"me")
        assert re.fullmatch(
            rb"%7\r\n\$6\r\nserver\r\n\$5\r\nredis\r\n\$7\r\nversion\r\n\$6\r\n7\.0\.15\r\n\$5\r\nproto\r\n:3\r\n\$2\r\nid"
            rb"\r\n:\d+\r\n\$4\r\nmode\r\n\$10\r\nstandalone\r\n\$4\r\nrole\r\n\$6\r\nmaster\r\n\$7\r\nmodules\r\n\*0\r\n",
            three,
        )
        assert wire.ask(b"CLIENT", b"GETNAME") == bulk(b"me")
        assert wire.ask(b"HELLO", b"2").startswith(b"*14\r\n")
        assert wire.ask(b"CLIENT", b"GETNAME") == bulk(b"me")


def test_reset_makes_a_connection_new(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire, server.wire() as other:
        wire.ask(b"SELECT", b"5")
        wire.ask(b"CLIENT", b"SETNAME", b"me")
        wire.ask(b"SUBSCRIBE", b"a")
        wire.ask(b"SSUBSCRIBE", b"a")
        assert wire.ask(b"RESET") == b"+RESET\r\n"
        assert other.ask(b"PUBLISH", b"a", b"x") == b":0\r\n"
        assert other.ask(b"SPUBLISH", b"a", b"x") == b":0\r\n"
        told = wire.ask(b"CLIENT", b"INFO")
        assert b" name= " in told and b" db=0 " in told and b" sub=0 psub=0 ssub=0 " in told and b" resp=2" in told


def test_quit_says_ok_and_closes(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire:
        wire.send(request(b"SUBSCRIBE", b"a") + request(b"QUIT") + request(b"PING"))
        assert wire.read_to_end() == push(protocol, b"subscribe", b"a", 1) + b"+OK\r\n"


def test_later_clients_introduce_themselves(ours: SocketServer) -> None:
    with ours.wire() as wire:
        assert wire.ask(b"CLIENT", b"SETINFO", b"LIB-NAME", b"redis-py") == b"+OK\r\n"
        assert wire.ask(b"CLIENT", b"SETINFO", b"lib-ver", b"8.1.0") == b"+OK\r\n"
        assert wire.ask(b"CLIENT", b"NO-TOUCH", b"on") == b"+OK\r\n"
        assert b" lib-name=redis-py lib-ver=8.1.0" in wire.ask(b"CLIENT", b"INFO")
        assert wire.ask(b"CLIENT", b"MAINT_NOTIFICATIONS", b"ON").startswith(b"-ERR unknown subcommand")


def test_password_is_asked_for(server: SocketServer, protocol: int) -> None:
    with server.client() as control:
        control.config_set("requirepass", "secret")
        try:
            once = Retry(NoBackoff(), 0)
            with pytest.raises(redis.AuthenticationError):
                server.client(protocol=protocol, retry=once).ping()
            with pytest.raises(redis.AuthenticationError):
                server.client(protocol=protocol, password="wrong", retry=once).ping()
            named = server.client(protocol=protocol, password="secret", client_name="me")
            assert named.client_getname() in ("me", b"me")
            assert server.client(protocol=protocol, username="default", password="secret").ping()
        finally:
            control.execute_command("AUTH", "secret")
            control.config_set("requirepass", "")


# -- while subscribed


def test_push_to_oneself_stands_before_the_reply(server: SocketServer) -> None:
    with server.wire(3) as wire:
        wire.ask(b"SUBSCRIBE", b"a")
        wire.ask(b"PSUBSCRIBE", b"*")
        wire.say(b"PUBLISH", b"a", b"x")
        assert wire.read(3) == push(3, b"message", b"a", b"x") + push(3, b"pmessage", b"*", b"a", b"x") + b":2\r\n"


def test_resp3_subscriber_may_do_anything(server: SocketServer) -> None:
    with server.wire(3) as wire:
        wire.ask(b"SUBSCRIBE", b"a")
        assert wire.ask(b"ECHO", b"x") == bulk(b"x")
        assert wire.ask(b"PING") == b"+PONG\r\n"
        assert wire.ask(b"MULTI") == b"+OK\r\n"
        assert wire.ask(b"DISCARD") == b"+OK\r\n"
        assert wire.ask(b"PUBSUB", b"NUMSUB", b"a") == b"*2\r\n" + bulk(b"a") + b":1\r\n"


@pytest.mark.parametrize("word", [b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"])
def test_resp2_subscriber_may_do_little_until_it_lets_go(server: SocketServer, word: bytes) -> None:
    with server.wire(2) as wire:
        wire.ask(word, b"a")
        assert wire.ask(b"ECHO", b"x").startswith(b"-ERR Can't execute 'echo': only (P|S)SUBSCRIBE")
        assert wire.ask(b"PING") == push(2, b"pong", b"")
        assert wire.ask(b"PING", b"x") == push(2, b"pong", b"x")
        undo = word.replace(b"SUB", b"UNSUB")
        assert wire.ask(undo, b"a") == push(2, undo.lower(), b"a", 0)
        assert wire.ask(b"PING") == b"+PONG\r\n"
        assert wire.ask(b"ECHO", b"x") == bulk(b"x")


def test_subscriber_may_change_its_protocol(server: SocketServer) -> None:
    with server.wire(3) as wire, server.wire() as other:
        wire.ask(b"SUBSCRIBE", b"a")
        other.ask(b"PUBLISH", b"a", b"1")
        assert wire.read() == push(3, b"message", b"a", b"1")
        assert wire.ask(b"HELLO", b"2").startswith(b"*14\r\n")
        other.ask(b"PUBLISH", b"a", b"2")
        assert wire.read() == push(2, b"message", b"a", b"2")
        assert wire.ask(b"ECHO", b"x").startswith(b"-ERR Can't execute")


# -- CLIENT


def test_silenced_connection_gets_messages_still(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire, server.wire() as other:
        wire.send(request(b"CLIENT", b"REPLY", b"OFF") + request(b"PING") + request(b"SUBSCRIBE", b"a"))
        assert wire.read() == push(protocol, b"subscribe", b"a", 1)
        assert other.ask(b"PUBLISH", b"a", b"x") == b":1\r\n"
        assert wire.read() == push(protocol, b"message", b"a", b"x")
        wire.send(request(b"PING", b"unheard") + request(b"UNSUBSCRIBE") + request(b"CLIENT", b"REPLY", b"ON"))
        assert wire.read(2) == push(protocol, b"unsubscribe", b"a", 0) + b"+OK\r\n"


def test_skipped_reply_is_one_reply(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire:
        wire.send(request(b"CLIENT", b"REPLY", b"SKIP") + request(b"ECHO", b"a") + request(b"ECHO", b"b"))
        assert wire.read() == bulk(b"b")
        wire.send(request(b"CLIENT", b"REPLY", b"SKIP") + request(b"SUBSCRIBE", b"a"))
        assert wire.read() == push(protocol, b"subscribe", b"a", 1)


@pytest.mark.parametrize("filters", [(b"TYPE", b"pubsub"), (b"ID", b"%ID%"), (b"USER", b"default", b"SKIPME", b"yes")])
def test_killed_subscriber_is_gone(server: SocketServer, protocol: int, filters: tuple[bytes, ...]) -> None:
    with server.wire(protocol) as wire, server.wire() as other:
        number = wire.ask(b"CLIENT", b"ID")[1:-2]
        wire.ask(b"SUBSCRIBE", b"a")
        killed = other.ask(b"CLIENT", b"KILL", *[word.replace(b"%ID%", number) for word in filters])
        assert killed.startswith(b":") and killed != b":0\r\n"
        assert wire.read_to_end() == b""
        assert other.ask(b"PUBLISH", b"a", b"x") == b":0\r\n"
        assert other.ask(b"PUBSUB", b"CHANNELS") == b"*0\r\n"


def test_connection_that_kills_itself_is_told_first(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire:
        wire.ask(b"SUBSCRIBE", b"a")
        if protocol == 2:
            wire.ask(b"UNSUBSCRIBE", b"a")
        wire.send(request(b"CLIENT", b"KILL", b"USER", b"default", b"SKIPME", b"no") + request(b"PING"))
        assert re.fullmatch(rb":\d+\r\n", wire.read_to_end())


@pytest.mark.parametrize("scope", [b"ALL", b"WRITE"])
def test_pause_holds_publishers_back_and_not_for_ever(server: SocketServer, scope: bytes) -> None:
    with server.wire() as publisher, server.wire() as subscriber, server.wire() as control:
        subscriber.ask(b"SUBSCRIBE", b"a")
        assert control.ask(b"CLIENT", b"PAUSE", b"300", scope) == b"+OK\r\n"
        publisher.send(request(b"PUBLISH", b"a", b"x") + request(b"PING"))
        if scope == b"WRITE":
            assert control.ask(b"PING") == b"+PONG\r\n"
            assert control.ask(b"PING") == b"+PONG\r\n"
            assert subscriber.take_what_came() == (b"", True)
            assert control.ask(b"CLIENT", b"UNPAUSE") == b"+OK\r\n"
        assert publisher.read(2) == b":1\r\n+PONG\r\n"
        assert subscriber.read() == push(2, b"message", b"a", b"x")


def test_a_pause_of_writes_holds_no_script_that_says_it_writes_nothing(server: SocketServer) -> None:
    library = b"#!lua name=f1\nredis.register_function{function_name='%b', callback=function() return 1 end%b}"
    reading = b"#!lua flags=no-writes\nreturn 2"
    plain = b"return 3"
    with server.wire() as control:
        control.ask(b"FUNCTION", b"LOAD", b"REPLACE", library % (b"f1", b", flags={'no-writes'}"))
        control.ask(b"FUNCTION", b"LOAD", b"REPLACE", (library % (b"f2", b"")).replace(b"=f1", b"=f2"))
        digest = control.ask(b"SCRIPT", b"LOAD", reading)[5:45]
        for held, words in (
            (False, (b"EVAL", b"#!lua flags=no-writes\nreturn 'new'", b"0")),
            (False, (b"EVAL", reading, b"0")),
            (False, (b"EVALSHA", digest, b"0")),
            (False, (b"EVAL_RO", plain, b"0")),
            (False, (b"FCALL", b"f1", b"0")),
            (False, (b"FCALL_RO", b"f1", b"0")),
            (True, (b"EVAL", plain, b"0")),
            (True, (b"EVAL", b"#!lua\nreturn 4", b"0")),
            (True, (b"EVAL_RO", b"#!lua\nreturn 5", b"0")),
            (True, (b"FCALL", b"f2", b"0")),
            (True, (b"FCALL", b"unknown", b"0")),
        ):
            with server.wire() as caller:
                control.ask(b"CLIENT", b"PAUSE", b"600000", b"WRITE")
                caller.say(*words)
                if not held:
                    caller.read()
                else:
                    blocked = [b"blocked_clients:1" in control.ask(b"INFO", b"clients") for _ in range(3)]
                    assert blocked[-1], words
                control.ask(b"CLIENT", b"UNPAUSE")
                if held:
                    caller.read()
        control.ask(b"FUNCTION", b"FLUSH")


def test_no_evict_and_unblock(server: SocketServer) -> None:
    with server.wire() as wire:
        assert wire.ask(b"CLIENT", b"NO-EVICT", b"on") == b"+OK\r\n"
        assert b" flags=e " in wire.ask(b"CLIENT", b"INFO")
        assert wire.ask(b"CLIENT", b"NO-EVICT", b"off") == b"+OK\r\n"
        assert b" flags=N " in wire.ask(b"CLIENT", b"INFO")
        assert wire.ask(b"CLIENT", b"UNBLOCK", b"1") == b":0\r\n"


def test_client_list_tells_what_each_holds(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire, server.wire() as other:
        wire.ask(b"CLIENT", b"SETNAME", b"me")
        for word in (b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"):
            wire.ask(word, b"a")
        listed = other.ask(b"CLIENT", b"LIST", b"TYPE", b"pubsub")
        assert b" name=me " in listed and b" flags=P db=0 sub=1 psub=1 ssub=1 multi=-1 " in listed
        assert b" cmd=ssubscribe user=default " in listed and b" resp=%d" % protocol in listed


# -- MONITOR


def monitored(wire: Wire) -> bytes:
    line = wire.read()
    assert re.match(rb"\+\d+\.\d{6} \[\d+ 127\.0\.0\.1:\d+\] ", line), line
    return line.partition(b"] ")[2]


def test_monitor_shows_what_is_executed(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as monitor, server.wire() as wire:
        assert monitor.ask(b"MONITOR") == b"+OK\r\n"
        wire.ask(b"PUBLISH", b"a\n\"\\", b"\0\xff")
        assert monitored(monitor) == b'"PUBLISH" "a\\n\\"\\\\" "\\x00\\xff"\r\n'
        wire.ask(b"NOPE")
        wire.ask(b"MULTI")
        wire.ask(b"PING")
        wire.ask(b"EXEC")
        assert [monitored(monitor) for _ in range(3)] == [b'"MULTI"\r\n', b'"PING"\r\n', b'"EXEC"\r\n']
        wire.ask(b"CONFIG", b"GET", b"databases")
        wire.ask(b"ECHO", b"x")
        assert monitored(monitor) == b'"ECHO" "x"\r\n'
        assert monitor.ask(b"RESET") == b"+RESET\r\n"
        wire.ask(b"PING")
        assert monitor.ask(b"PING") == b"+PONG\r\n"


def test_passwords_are_not_shown(server: SocketServer) -> None:
    with server.wire() as monitor, server.wire() as wire:
        monitor.ask(b"MONITOR")
        wire.ask(b"AUTH", b"secret")
        wire.ask(b"HELLO", b"3", b"AUTH", b"default", b"secret")
        wire.ask(b"PING")
        shown = b"".join([monitored(monitor) for _ in range(2)])
        assert b"secret" not in shown and b"redacted" in shown


# -- transactions


def test_transaction_is_executed_as_one(any_server: SocketServer | FakeServer, protocol: int) -> None:
    client, other = any_server.client(protocol=protocol), any_server.client(protocol=protocol)
    with other.pubsub() as pubsub:
        pubsub.subscribe("a")
        assert pubsub.get_message(timeout=PATIENCE_S) is not None
        with client.pipeline() as pipe:
            pipe.publish("a", "1").publish("b", "2").ping().publish("a", "3")
            assert pipe.execute() == [1, 0, True, 1]
        received = [pubsub.get_message(timeout=PATIENCE_S) for _ in range(2)]
        assert [message and message["data"] for message in received] == [b"1", b"3"]


def test_subscribing_in_a_transaction_answers_in_its_place(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire:
        for words in ([b"MULTI"], [b"SUBSCRIBE", b"a"], [b"PUBLISH", b"a", b"x"], [b"UNSUBSCRIBE", b"a"]):
            wire.ask(*words)
        wire.say(b"EXEC")
        expected = [
            b"*3\r\n",
            push(protocol, b"subscribe", b"a", 1),
            push(protocol, b"message", b"a", b"x"),
            b":1\r\n",
            push(protocol, b"unsubscribe", b"a", 0),
        ]
        assert b"".join([wire.read_line() for _ in range(b"".join(expected).count(b"\n"))]) == b"".join(expected)


def test_transaction_of_a_subscriber(server: SocketServer, protocol: int) -> None:
    """In RESP2 it can still be in a transaction that it began before; whatever may not be said then, spoils it."""
    with server.wire(protocol) as wire:
        wire.ask(b"MULTI")
        assert wire.ask(b"SUBSCRIBE", b"a") == b"+QUEUED\r\n"
        assert wire.ask(b"ECHO", b"x") == b"+QUEUED\r\n"
        wire.say(b"EXEC")
        expected = b"*2\r\n" + push(protocol, b"subscribe", b"a", 1) + bulk(b"x")
        assert b"".join([wire.read_line() for _ in range(expected.count(b"\n"))]) == expected


def test_watch_and_its_end(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire, server.wire() as other:
        assert wire.ask(b"WATCH", b"k") == b"+OK\r\n"
        assert wire.ask(b"MULTI") == b"+OK\r\n"
        assert wire.ask(b"WATCH", b"k") == b"-ERR WATCH inside MULTI is not allowed\r\n"
        assert wire.ask(b"PING") == b"+QUEUED\r\n"
        other.ask(b"FLUSHALL")
        assert wire.ask(b"EXEC") == b"*1\r\n+PONG\r\n"
        assert wire.ask(b"UNWATCH") == b"+OK\r\n"


def test_spoilt_transaction_says_why(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire:
        wire.ask(b"MULTI")
        assert wire.ask(b"NOPE").startswith(b"-ERR unknown command 'NOPE'")
        assert wire.ask(b"PING") == b"+QUEUED\r\n"
        assert wire.ask(b"EXEC") == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
        assert wire.ask(b"EXEC") == b"-ERR EXEC without MULTI\r\n"


def test_disconnected_transaction_leaves_nothing(server: SocketServer) -> None:
    with server.wire() as wire, server.wire() as other:
        wire.send(request(b"MULTI") + request(b"SUBSCRIBE", b"a") + request(b"PUBLISH", b"a", b"x"))
        wire.read(3)
        wire.close()
        until(lambda: b"multi=2" not in other.ask(b"CLIENT", b"LIST"))
        assert other.ask(b"PUBSUB", b"CHANNELS") == b"*0\r\n"
