"""FUNCTION and FCALL. What they answer is compared with redis-server in compat_tests/."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

HELLO = "#!lua name=lib\nredis.register_function('hello', function(keys, args) return {keys[1], args[1]} end)"
WRITING = """#!lua name=writing
redis.register_function('put', function(keys, args) return redis.call('set', keys[1], args[1]) end)
redis.register_function{
  function_name='look', callback=function(keys) return redis.call('get', keys[1]) end, flags={'no-writes'},
  description='what a key has'
}
redis.register_function{
  function_name='lie', callback=function(keys) return redis.call('del', keys[1]) end, flags={'no-writes'}
}"""


def load(session: RecordedSession, body: str) -> bytes:
    return session.do("FUNCTION", "LOAD", "#!lua name=other\n" + body)


def test_a_function_is_called_with_its_keys_and_arguments(session: RecordedSession) -> None:
    assert session.do("FUNCTION", "LOAD", HELLO) == b"$3\r\nlib\r\n"
    assert session.do("FCALL", "HELLO", "1", "k", "a") == b"*2\r\n$1\r\nk\r\n$1\r\na\r\n"
    assert session.do("FCALL", "nobody", "0") == b"-ERR Function not found\r\n"
    assert session.do("FUNCTION", "DELETE", "lib") == b"+OK\r\n"
    assert session.do("FCALL", "hello", "0") == b"-ERR Function not found\r\n"


def test_a_function_does_what_its_flags_allow(session: RecordedSession) -> None:
    session.do("FUNCTION", "LOAD", WRITING)
    assert session.do("FCALL", "put", "1", "k", "v") == b"+OK\r\n"
    assert session.do("FCALL_RO", "look", "1", "k") == b"$1\r\nv\r\n"
    refused = b"-ERR Can not execute a script with write flag using *_ro command.\r\n"
    assert session.do("FCALL_RO", "put", "1", "k", "w") == refused
    assert session.do("FCALL", "lie", "1", "k") == (
        b"-ERR Write commands are not allowed from read-only scripts. script: lie, on @user_function:8.\r\n"
    )
    assert session.do("GET", "k") == b"$1\r\nv\r\n"


def test_what_a_library_keeps_stays_its_own(session: RecordedSession) -> None:
    load(session, "local n = 0\nredis.register_function('count', function() n = n + 1 return n end)")
    assert session.do("FCALL", "count", "0") == b":1\r\n"
    assert session.do("FCALL", "count", "0") == b":2\r\n"
    assert session.do("EVAL", "return n", "0").startswith(b"-ERR user_script:1: Script attempted to access nonexistent")
    assert session.do("EVAL", "return redis.register_function", "0") == b"$-1\r\n"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("redis.call('set', 'k', 'v')", "Script attempted to access nonexistent global variable 'call'"),
        ("math.abs(1)", "Script attempted to access nonexistent global variable 'math'"),
        ("x = 1", "Attempt to modify a readonly table"),
        ("redis.x = 1", "Attempt to modify a readonly table"),
    ],
)
def test_while_it_is_loaded_a_library_finds_little(session: RecordedSession, body: str, text: str) -> None:
    assert load(session, body) == f"-ERR Error registering functions: ERR user_function:2: {text}\r\n".encode()
    assert session.do("FUNCTION", "LIST") == b"*0\r\n"


def test_a_library_that_does_not_end_is_not_loaded(session: RecordedSession) -> None:
    refused = b"-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n"
    assert load(session, "while true do end") == refused
    assert load(session, "local function f() return f() end f()").startswith(b"-ERR Error registering functions: ERR")
    assert load(session, "local s = 'x' while true do s = s .. s end").endswith(b"not enough memory\r\n")
    session.do("FUNCTION", "LOAD", HELLO)
    assert session.do("FCALL", "hello", "1", "k", "a") == b"*2\r\n$1\r\nk\r\n$1\r\na\r\n"


def test_one_that_fails_to_replace_another_leaves_it(session: RecordedSession) -> None:
    session.do("FUNCTION", "LOAD", HELLO)
    assert session.do("FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nerror('no')").startswith(b"-ERR Error reg")
    assert session.do("FCALL", "hello", "1", "k", "a") == b"*2\r\n$1\r\nk\r\n$1\r\na\r\n"


def test_flushall_leaves_libraries(session: RecordedSession) -> None:
    session.do("FUNCTION", "LOAD", HELLO)
    session.do("FLUSHALL")
    assert session.do("FCALL", "hello", "1", "k", "a") == b"*2\r\n$1\r\nk\r\n$1\r\na\r\n"


def test_functions_are_called_in_transactions(session: RecordedSession, house: House) -> None:
    session.do("FUNCTION", "LOAD", WRITING)
    session.do("MULTI")
    session.do("SET", "k", "first")
    session.do("FCALL", "look", "1", "k")
    session.do("FCALL", "put", "1", "k", "second")
    assert session.do("EXEC") == b"*3\r\n+OK\r\n$5\r\nfirst\r\n+OK\r\n"
    assert session.do("GET", "k") == b"$6\r\nsecond\r\n"


def test_what_is_dumped_is_restored_with_what_it_says_of_itself(session: RecordedSession) -> None:
    session.do("FUNCTION", "LOAD", WRITING)
    listed = session.do("FUNCTION", "LIST", "WITHCODE")
    assert b"what a key has" in listed
    dumped = session.do("FUNCTION", "DUMP")
    payload = dumped[dumped.index(b"\r\n") + 2 : -2]
    assert session.do("FUNCTION", "RESTORE", payload) == b"-ERR Library writing already exists\r\n"
    session.do("FUNCTION", "FLUSH")
    assert session.do("FUNCTION", "RESTORE", payload[:-1] + b"x").startswith(b"-ERR DUMP payload version or checksum")
    assert session.do("FUNCTION", "RESTORE", payload) == b"+OK\r\n"
    assert session.do("FUNCTION", "LIST", "WITHCODE") == listed


def test_info_counts_libraries_and_functions(session: RecordedSession) -> None:
    session.do("FUNCTION", "LOAD", WRITING)
    told = session.do("INFO", "memory")
    assert b"number_of_functions:3\r\n" in told and b"number_of_libraries:1\r\n" in told


@pytest.mark.settings(enable_debug_command="yes")
def test_reloading_upon_what_is_there_is_refused_unless_it_is_merged(session: RecordedSession) -> None:
    assert session.do("DEBUG", "RELOAD", "NOFLUSH") == b"+OK\r\n"
    session.do("FUNCTION", "LOAD", HELLO)
    assert session.do("DEBUG", "RELOAD", "NOFLUSH").startswith(b"-ERR Error trying to load the RDB dump")
    assert session.do("DEBUG", "RELOAD", "NOFLUSH", "MERGE") == session.do("DEBUG", "RELOAD") == b"+OK\r\n"
