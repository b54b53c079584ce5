"""EVAL and its kin: what a script may do, what it is told, and what becomes of what it returns. All of it is the same
through lupa and through C."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from c_module import compiled
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.scripts import crossing


@pytest.fixture(params=["lupa", "C"], autouse=True)
def between(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is between Python and Lua."""
    source = Path(crossing.__file__).with_name("_crossing.c")
    monkeypatch.setattr(crossing, "_crossing_library", compiled(source) if request.param == "C" else None)
    return str(request.param)


def run(session: RecordedSession, source: str, *words: str | bytes) -> bytes:
    """Behind the source: how many keys, keys, arguments."""
    return session.do("EVAL", source, *(words or ("0",)))


def sha_of(source: str) -> str:
    return hashlib.sha1(source.encode()).hexdigest()


def refusal(source: str, text: str, line: int = 1) -> bytes:
    return f"-{text} script: {sha_of(source)}, on @user_script:{line}.\r\n".encode()


def test_a_script_executes_commands_with_keys_and_arguments(session: RecordedSession) -> None:
    source = "return redis.call('set', KEYS[1], ARGV[1])"
    assert run(session, source, "1", "k", "v") == b"+OK\r\n"
    assert session.do("GET", "k") == b"$1\r\nv\r\n"
    assert session.do("EVALSHA", sha_of(source).upper(), "1", "k", "w") == b"+OK\r\n"
    assert session.do("GET", "k") == b"$1\r\nw\r\n"


def test_scripts_run_through_what_was_compiled(session: RecordedSession, between: str) -> None:
    run(session, "return 1")
    kind = type(session.engine.scripts.runner.sandbox.crossing)
    assert kind is (crossing.OwnCrossing if between == "C" else crossing.LupasCrossing)


def test_a_script_logs_no_more_of_a_text_than_a_megabyte(
    session: RecordedSession, caplog: pytest.LogCaptureFixture
) -> None:
    run(session, "redis.log(redis.LOG_WARNING, 'it', 'says', 5) redis.log(redis.LOG_WARNING, string.rep('x', 3000000))")
    short, long = (record.getMessage() for record in caplog.records)
    assert short == "it says 5"
    assert long == "x" * (1 << 20)


def test_what_is_not_loaded_is_not_known(session: RecordedSession) -> None:
    unknown = b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
    assert session.do("EVALSHA", "a" * 40, "0") == session.do("EVALSHA", "short", "0") == unknown
    sha = sha_of("return 1")
    assert session.do("SCRIPT", "LOAD", "return 1") == f"$40\r\n{sha}\r\n".encode()
    assert session.do("SCRIPT", "EXISTS", sha, "a" * 40) == b"*2\r\n:1\r\n:0\r\n"
    assert session.do("SCRIPT", "FLUSH") == b"+OK\r\n"
    assert session.do("EVALSHA", sha, "0") == unknown


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ("return 3.99", b":3\r\n"),
        ("return -3.99", b":-3\r\n"),
        ("return 'text'", b"$4\r\ntext\r\n"),
        ("return true", b":1\r\n"),
        ("return false", b"$-1\r\n"),
        ("return", b"$-1\r\n"),
        ("return {1, 'x', {2}, nil, 3}", b"*3\r\n:1\r\n$1\r\nx\r\n*1\r\n:2\r\n"),
        ("return {ok='fine'}", b"+fine\r\n"),
        ("return {err='WRONG it is'}", b"-WRONG it is\r\n"),
        ("return {double=0.5}", b"$3\r\n0.5\r\n"),
        ("return {big_number='123'}", b"$3\r\n123\r\n"),
        ("return {map={a=1}}", b"*2\r\n$1\r\na\r\n:1\r\n"),
        ("return {set={a=true}}", b"*1\r\n$1\r\na\r\n"),
        ("return {verbatim_string={format='txt', string='x'}}", b"$1\r\nx\r\n"),
        ("return redis.status_reply('fine')", b"+fine\r\n"),
        ("return redis.error_reply('MY error')", b"-MY error\r\n"),
        ("return redis.error_reply('-MY error')", b"-MY error\r\n"),
        ("return redis.sha1hex('')", b"$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n"),
    ],
)
def test_values_of_luas_are_replies(session: RecordedSession, source: str, reply: bytes) -> None:
    assert run(session, source) == reply


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("return redis.call('nope')", "ERR Unknown Redis command called from script"),
        ("return redis.call('get')", "ERR Wrong number of args calling Redis command from script"),
        ("return redis.call('multi')", "ERR This Redis command is not allowed from script"),
        ("return redis.call()", "ERR Please specify at least one argument for this redis lib call"),
        ("return redis.call('get', {})", "ERR Lua redis lib command arguments must be strings or integers"),
        ("return redis.call('incr', 'text')", "ERR value is not an integer or out of range"),
        ("error('x')", "ERR user_script:1: x"),
        ("error({err='MY own'})", "MY own"),
        ("return nothing", "ERR user_script:1: Script attempted to access nonexistent global variable 'nothing'"),
        ("return os.execute", ""),
    ],
)
def test_errors_tell_of_their_place(session: RecordedSession, source: str, text: str) -> None:
    session.do("SET", "text", "x")
    assert run(session, source) == (refusal(source, text) if text else b"$-1\r\n")


@pytest.mark.parametrize(
    "source",
    [
        "redis = 1",
        "redis.call = 1",
        "string.rep = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'call', 1)",
        "setmetatable(_G, {})",
        "setmetatable(redis, {})",
        "getmetatable(_G).__index = nil",
        "getmetatable('').__index = nil",
        "getmetatable('').__index.rep = nil",
        "table.insert(redis, 1)",
        "local k = next(redis); local m = getmetatable(redis) or {}; (m.__index or redis).call = 1",
    ],
)
def test_what_all_scripts_share_cannot_be_changed(session: RecordedSession, source: str) -> None:
    assert b"Attempt to modify a readonly table" in run(session, source)
    assert run(session, "return {type(redis.call), type(string.rep), rawget(_G, 'x')}").startswith(
        b"*2\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n"
    )


def test_what_was_written_before_an_error_stays(session: RecordedSession) -> None:
    source = "redis.call('set', 'a', 1) redis.call('incr', 'a', 'too', 'much')"
    text = "ERR Wrong number of args calling Redis command from script"
    assert run(session, source) == refusal(source, text)
    assert session.do("GET", "a") == b"$1\r\n1\r\n"


def test_a_caught_error_is_a_value(session: RecordedSession) -> None:
    assert run(session, "return redis.pcall('nope')") == b"-ERR Unknown Redis command called from script\r\n"
    caught = run(session, "local ok, text = pcall(redis.call, 'nope') return {ok, text}")
    assert caught == b"*2\r\n$-1\r\n$44\r\nERR Unknown Redis command called from script\r\n"


def test_time_stands_still_for_keys(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PX", "10")
    house.engine.freeze_time()
    house.clock.now += 1
    assert session.do("EXISTS", "k") == b":1\r\n"
    house.engine.unfreeze_time()
    assert session.do("EXISTS", "k") == b":0\r\n"


@pytest.mark.parametrize("count", [3, 300, 1000])
@pytest.mark.parametrize("size_bytes", [1, 1000])
@pytest.mark.parametrize("protocol", [2, 3])
def test_arrays_are_the_same_in_lua_whatever_their_size(
    session: RecordedSession, count: int, size_bytes: int, protocol: int
) -> None:
    """Small ones are handed over in another way than large ones (conversions.py)."""
    words = [str(number).zfill(size_bytes) for number in range(count)]
    session.do("RPUSH", "l", *words)
    session.do("SADD", "s", *words)
    session.do("HSET", "h", *[each for word in words for each in (word, "v" + word)])
    source = f"""
    redis.setresp({protocol})
    local list = redis.call('lrange', 'l', 0, -1)
    local all = redis.call('smembers', 's')
    local members, count = all, #all
    if {protocol} == 3 then
      members, count = {{}}, 0
      for member in pairs(all.set) do members[#members + 1] = member count = count + 1 end
    end
    table.sort(members)
    local hash = redis.call('hgetall', 'h')
    local fields = 0
    if {protocol} == 3 then
      for name, value in pairs(hash.map) do assert('v' .. name == value) fields = fields + 1 end
    else
      for place = 1, #hash, 2 do assert('v' .. hash[place] == hash[place + 1]) fields = fields + 1 end
    end
    return {{#list, count, fields, list[#list], members[#members]}}
    """
    last = f"${size_bytes if size_bytes > 1 else len(words[-1])}\r\n"
    reply = run(session, source)
    assert reply.startswith(f"*5\r\n:{count}\r\n:{count}\r\n:{count}\r\n{last}{words[-1]}\r\n".encode()), reply


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ("local a = redis.call('mget', 'k', 'none', 'k') return {#a, a[1], type(a[2]), a[3]}",
         b"*4\r\n:3\r\n$1\r\nv\r\n$7\r\nboolean\r\n$1\r\nv\r\n"),
        ("redis.setresp(3) local a = redis.call('mget', 'none', 'k') return {type(a[1]), a[2]}",
         b"*2\r\n$3\r\nnil\r\n$1\r\nv\r\n"),
        ("return type(redis.call('get', 'none'))", b"$7\r\nboolean\r\n"),
        ("redis.setresp(3) return type(redis.call('get', 'none'))", b"$3\r\nnil\r\n"),
        ("local s = redis.call('set', 'k', 'w') return {type(s), s.ok}", b"*2\r\n$5\r\ntable\r\n$2\r\nOK\r\n"),
        ("local s = redis.pcall('type', 'k') s.ok = s.ok .. '!' return s", b"+string!\r\n"),
        ("return redis.call('smembers', 'none')", b"*0\r\n"),
        ("return {redis.call('incr', 'n'), redis.call('incr', 'n')}", b"*2\r\n:1\r\n:2\r\n"),
        ("return 9007199254740991", b":9007199254740991\r\n"),
        ("return 9007199254740992", b":9007199254740992\r\n"),
        ("return -9007199254740994", b":-9007199254740994\r\n"),
        ("return -0.5", b":0\r\n"),
    ],
)  # fmt: skip
def test_what_commands_answer_is_a_value_of_luas(session: RecordedSession, source: str, reply: bytes) -> None:
    session.do("SET", "k", "v")
    assert run(session, source) == reply


def test_keys_and_arguments_are_tables_of_their_own_for_each_run(session: RecordedSession) -> None:
    source = "KEYS.x = 1 ARGV[#ARGV + 1] = 'more' return {#KEYS, #ARGV, KEYS[1] or 'none', ARGV[1]}"
    for _ in range(2):
        assert run(session, source, "1", "k") == b"*4\r\n:1\r\n:1\r\n$1\r\nk\r\n$4\r\nmore\r\n"
        assert run(session, source, "0", "a", "b") == b"*4\r\n:0\r\n:3\r\n$4\r\nnone\r\n$1\r\na\r\n"
        assert run(session, source, "2", "k", "l", "a") == b"*4\r\n:2\r\n:2\r\n$1\r\nk\r\n$1\r\na\r\n"
    assert b"nonexistent global variable 'KEYS'" in session.do(
        "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return KEYS end)"
    ) + session.do("FCALL", "f", "0")
