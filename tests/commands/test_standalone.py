"""What is not here (keys, scripts, replicas, a cluster, modules) is answered as an empty, standalone Redis answers."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

OK = b"+OK\r\n"
SYNTAX = b"-ERR syntax error\r\n"
NO_CLUSTER = b"-ERR This instance has cluster support disabled\r\n"


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ("DBSIZE", b":0\r\n"),
        ("FLUSHALL", OK),
        ("FLUSHALL ASYNC", OK),
        ("FLUSHDB sync", OK),
        ("FLUSHALL x", SYNTAX),
        ("FLUSHDB SYNC SYNC", SYNTAX),
        ("SWAPDB 0 15", OK),
        ("SWAPDB 0 16", b"-ERR DB index is out of range\r\n"),
        ("SWAPDB -1 0", b"-ERR DB index is out of range\r\n"),
        ("SWAPDB a 0", b"-ERR invalid first DB index\r\n"),
        ("SWAPDB 0 2147483648", b"-ERR invalid second DB index\r\n"),
        ("MEMORY USAGE k", b"$-1\r\n"),
        ("MEMORY USAGE k SAMPLES 0", b"$-1\r\n"),
        ("MEMORY USAGE k SAMPLES -1", SYNTAX),
        ("MEMORY USAGE k SAMPLES", SYNTAX),
        ("MEMORY USAGE k x 1", SYNTAX),
        ("MEMORY USAGE k SAMPLES x", b"-ERR value is not an integer or out of range\r\n"),
        ("MEMORY PURGE", OK),
        ("SCRIPT FLUSH", OK),
        ("SCRIPT FLUSH async", OK),
        ("SCRIPT FLUSH x", b"-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"),
        ("SCRIPT EXISTS a b", b"*2\r\n:0\r\n:0\r\n"),
        ("SCRIPT KILL", b"-NOTBUSY No scripts in execution right now.\r\n"),
        ("FUNCTION FLUSH SYNC", OK),
        ("FUNCTION FLUSH x", b"-ERR FUNCTION FLUSH only supports SYNC|ASYNC option\r\n"),
        (
            "FUNCTION FLUSH SYNC x",
            b"-ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.\r\n",
        ),
        ("FUNCTION LIST LIBRARYNAME x WITHCODE", b"*0\r\n"),
        ("FUNCTION LIST LIBRARYNAME", b"-ERR library name argument was not given\r\n"),
        ("FUNCTION LIST WITHCODE withcode", b"-ERR Unknown argument withcode\r\n"),
        ("FUNCTION DELETE x", b"-ERR Library not found\r\n"),
        ("FUNCTION KILL", b"-NOTBUSY No scripts in execution right now.\r\n"),
        ("MODULE LIST", b"*0\r\n"),
        ("CLUSTER INFO", NO_CLUSTER),
        ("CLUSTER MYID", NO_CLUSTER),
        ("CLUSTER HELP", NO_CLUSTER),
        ("CLUSTER nosuch", b"-ERR unknown subcommand 'nosuch'. Try CLUSTER HELP.\r\n"),
        ("CLUSTER KEYSLOT", b"-ERR wrong number of arguments for 'cluster|keyslot' command\r\n"),
        ("READONLY", NO_CLUSTER),
        ("READWRITE", NO_CLUSTER),
        ("ASKING", NO_CLUSTER),
        ("ROLE", b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
        ("REPLICAOF no ONE", OK),
        ("SLAVEOF NO ONE", OK),
        ("REPLICAOF host 70000", b"-ERR Invalid master port\r\n"),
        ("REPLICAOF host 6379", OK),
        ("SYNC", b"-ERR only a server has replicas: this is a program that has opened the store by itself\r\n"),
        ("PSYNC ? -1", b"-ERR only a server has replicas: this is a program that has opened the store by itself\r\n"),
        ("REPLCONF listening-port", SYNTAX),
        ("REPLCONF listening-port 1 capa eof", b"+OK\r\n"),
            ("REPLCONF nope 1", b"-ERR Unrecognized REPLCONF option: nope\r\n"),
    ],
)
def test_answer(session: RecordedSession, request_: str, reply: bytes) -> None:
    assert session.do(*request_.split()) == reply


def test_no_function_runs_and_none_is_loaded(session: RecordedSession) -> None:
    counts = b"*4\r\n$15\r\nlibraries_count\r\n:0\r\n$15\r\nfunctions_count\r\n:0\r\n"
    assert session.do("FUNCTION", "STATS") == (
        b"*4\r\n$14\r\nrunning_script\r\n$-1\r\n$7\r\nengines\r\n*2\r\n$3\r\nLUA\r\n" + counts
    )


def test_modules_are_protected_and_none_can_be_loaded() -> None:
    assert b"MODULE command not allowed" in House().session().do("MODULE", "LOAD", "/x.so")
    session = House(enable_module_command="yes").session()
    assert session.do("MODULE", "LOAD", "/x.so").startswith(b"-ERR Error loading the extension.")
    assert session.do("MODULE", "UNLOAD", "x") == b"-ERR Error unloading module: no such module with that name\r\n"


@pytest.mark.parametrize("container", ["COMMAND", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "SCRIPT", "SLOWLOG"])
def test_help_begins_with_the_grammar_and_ends_with_itself(session: RecordedSession, container: str) -> None:
    lines = session.do(container, "HELP").split(b"\r\n")
    assert lines[1] == b"+%b <subcommand> [<arg> [value] [opt] ...]. Subcommands are:" % container.encode()
    assert lines[-3:] == [b"+HELP", b"+    Prints this help.", b""]
    assert lines[0] == b"*%d" % (len(lines) - 2)


def test_memory_stats_are_a_map_of_what_the_process_takes(session: RecordedSession) -> None:
    session.do("HELLO", "3")
    reply = session.do("MEMORY", "STATS")
    assert reply.startswith(b"%27\r\n$14\r\npeak.allocated\r\n:")
    assert b"$29\r\nallocator-fragmentation.ratio\r\n,1\r\n" in reply


def test_memory_doctor_finds_nothing_where_nothing_is(session: RecordedSession) -> None:
    assert b"Nothing is wrong" in session.do("MEMORY", "DOCTOR")


def test_memory_doctor_speaks_of_a_peak_that_is_over(session: RecordedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlite_pubsub.engine.stats.sampler.resident_bytes", lambda: 100 << 20)
    session.engine.sampler.peak_bytes = 1 << 30
    assert b"It once took 1.00G and now takes 100.00M" in session.do("MEMORY", "DOCTOR")
