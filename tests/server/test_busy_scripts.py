"""Scripts that run too long, or want too much: others are told so, and may end them; the server is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
ENDLESS = (
    "while true do end",
    "while true do redis.call('ping') end",
    "while true do pcall(function() while true do end end) end",
    "local function f() while true do redis.call('ping') end end while true do pcall(f) end",
    "while true do xpcall(error, function() while true do end end) end",
    "coroutine.wrap(function() while true do end end)()",
    "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "while true do load(function() while true do end end) end",
    "table.sort({1, 2, 3}, function() while true do end end)",
    "return setmetatable({}, {__index = function() while true do end end}).x",
    "string.gsub('x', 'x', function() while true do end end)",
)
GREEDY = (
    "return string.rep('x', 1e10)",
    "return ('x'):rep(1e9):rep(1e9)",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} for i = 1, 1e9 do t[i] = {} end",
    "local t = {} while true do t[#t + 1] = string.rep('x', 1e6) .. #t end",
    "local s = string.rep('x', 1e8) local t = {} for i = 1, 1000 do t[i] = s end return table.concat(t)",
    "local s = string.rep('x', 1e7) return (s:gsub('x', s))",
    "local s, t = string.rep('x', 1e7), {} for i = 1, 1000 do t[i] = s end return t",
    "local s, t = string.rep('x', 1e7), {} for i = 1, 1000 do t[i] = s end return redis.call('del', unpack(t))",
    "local s, t = string.rep('x', 1e7), {} for i = 1, 1000 do t[i] = s end redis.acl_check_cmd('del', unpack(t))",
    "local function f() return f() + 1 end return f()",
    "local a = {} for i = 1, 1e7 do a = {a} end return a",
    "return string.rep('(', 1e5)",
    "return string.find(string.rep('a', 1e6), string.rep('a?', 1e6))",
    "return string.match(string.rep('a', 1e6), string.rep('a*', 1e6))",
    "return (string.gsub(string.rep('a', 1e6), string.rep('a-', 1e6), ''))",
    "for w in string.gmatch(string.rep('a', 1e6), string.rep('a+', 1e6)) do end",
    "return loadstring(string.rep('(', 1e5))",
    "while true do redis.call('echo', string.rep('x', 1e8)) collectgarbage('stop') end",
    "local t = {} while true do t[#t + 1] = redis.call('mget', string.rep('x', 1e6) .. #t, {}) end",
)
MOST_GROWTH_BYTES = 600 << 20


def answer(peer: Peer, *words: str | int) -> str:
    reply = peer.do(*words)
    return reply.decode() if isinstance(reply, bytes) else str(reply)


@contextmanager
def busy_server(serve: Serve) -> Iterator[tuple[ServerProcess, Peer, Peer]]:
    server = serve("--lua-time-limit", "10")
    with server.connect() as runner, server.connect() as other:
        yield server, runner, other


def test_endless_scripts_are_killed_and_others_hear_of_them(serve: Serve) -> None:
    with busy_server(serve) as (_, runner, other):
        for source in ENDLESS:
            runner.send(request("EVAL", source, 0))
            until(lambda: answer(other, "PING") == BUSY, source)
            assert answer(other, "GET", "x") == BUSY
            assert answer(other, "SCRIPT", "KILL") == "OK"
            assert "Script killed by user with SCRIPT KILL" in str(runner.replies(1)[0]), source
            assert answer(other, "PING") == "PONG"


def test_a_script_that_has_written_is_ended_only_with_the_server(serve: Serve) -> None:
    with busy_server(serve) as (server, runner, other):
        runner.send(request("EVAL", "redis.call('set', 'k', 'v') while true do end", 0))
        until(lambda: answer(other, "PING") == BUSY, "the script")
        assert answer(other, "SCRIPT", "KILL").startswith("UNKILLABLE")
        other.send(request("SHUTDOWN", "NOSAVE"))
        assert server.exit_code() == 0
    with serve().connect() as peer:
        assert peer.do("EXISTS", "k") == 0


def test_nobody_is_served_in_the_midst_of_a_script(serve: Serve) -> None:
    server = serve("--lua-time-limit", "10", "--enable-debug-command", "yes")
    with server.connect() as runner, server.connect() as other, server.connect() as waiter:
        assert answer(runner, "DEBUG", "SET-DISABLE-DENY-SCRIPTS", 1) == "OK"  # it looks for another's name
        waiter.send(request("BLPOP", "list", 0))
        until(lambda: "blocked_clients:1" in answer(other, "INFO", "clients"), "the wait")
        source = """redis.call('lpush', 'list', 'first')
            repeat until string.find(redis.call('client', 'list'), 'enough')
            return redis.call('lpush', 'list', 'second')"""
        runner.send(request("EVAL", source, 0))
        until(lambda: answer(other, "PING") == BUSY, "the script")
        assert other.do("HELLO", 2, "SETNAME", "enough")
        assert runner.replies(1) == [2]
        assert waiter.replies(1) == [[b"list", b"second"]]


@pytest.mark.parametrize("source", GREEDY)
def test_greedy_scripts_fail_and_leave_nothing(serve: Serve, source: str) -> None:
    server = serve()
    with server.connect() as peer:
        answer(peer, "EVAL", "return 1", 0)
        before = server.own_memory_bytes()
        answer(peer, "EVAL", source, 0)
        answer(peer, "EVAL", "return 1", 0)
        assert server.peak_memory_bytes() - before < MOST_GROWTH_BYTES
        assert answer(peer, "PING") == "PONG"
