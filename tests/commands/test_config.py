"""CONFIG, through dispatch. CASES hold exact replies of redis-server 7.0.15; each is a session's requests in a row."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import rlite_pubsub.commands.all  # noqa: F401
from rlite_pubsub.engine.dispatch import execute
from rlite_pubsub.engine.engine import Engine
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.engine.settings.settings import SettingError, Settings
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.storage.memory import open_memory


class HeardSession(CommandSession):
    """Keeps what was sent."""

    heard: bytes = b""
    local = True

    def send(self, data: bytes) -> None:
        self.heard += data

    @property
    def is_local(self) -> bool:
        return self.local

    def ask(self, *args: str) -> bytes:
        """The reply to one request."""
        self.heard = b""
        assert execute(self, [arg.encode("latin-1") for arg in args])
        return self.heard


def session_with(**directives: str) -> HeardSession:
    settings = Settings({name.replace("_", "-"): value for name, value in directives.items()})
    data = open_memory()
    rules = Rules(data)
    return HeardSession(Engine(settings, Hub(lambda changes: None, rules=rules), rules, data))


@pytest.fixture
def session() -> HeardSession:
    return session_with()


FAILED = "-ERR CONFIG SET failed (possibly related to argument '"
UNKNOWN = "-ERR Unknown option or number of arguments for CONFIG SET - '"
CLASS = "Invalid client class specified in buffer limit configuration."
LIMIT = "Error in hard, soft or soft_seconds setting in buffer limit configuration."
COUNT = "Wrong number of arguments in buffer limit configuration."
MEMORY = "argument must be a memory value"
INTEGER = "argument couldn't be parsed into an integer"

CASES = {
    "unknown option": [("nosuch 1", f"{UNKNOWN}nosuch'")],
    "unknown option keeps its case": [("NoSuch 1", f"{UNKNOWN}NoSuch'")],
    "unknown option after a good one": [("maxclients 100 nosuch 1", f"{UNKNOWN}nosuch'")],
    "first fault is told": [("daemonize yes nosuch 1", f"{FAILED}daemonize') - can't set immutable config")],
    "odd number of words": [("maxclients 100 port", "-ERR syntax error")],
    "too few words": [("maxclients", "-ERR wrong number of arguments for 'config|set' command")],
    "immutable": [("DAEMONIZE yes", f"{FAILED}DAEMONIZE') - can't set immutable config")],
    "protected": [("dbfilename x", f"{FAILED}dbfilename') - can't set protected config")],
    "duplicate": [("timeout 0 timeout 1", f"{FAILED}timeout') - duplicate parameter")],
    "alias and name are no duplicates": [("replica-priority 1 slave-priority 2", "+OK")],
    "not a bool": [("rdbcompression maybe", f"{FAILED}rdbcompression') - argument must be 'yes' or 'no'")],
    "bool in capitals": [("rdbcompression NO", "+OK"), ("rdbcompression yes", "+OK")],
    "not an integer": [("timeout abc", f"{FAILED}timeout') - {INTEGER}")],
    "integer with a plus": [("timeout +5", f"{FAILED}timeout') - {INTEGER}")],
    "empty integer": [("timeout ''", f"{FAILED}timeout') - {INTEGER}")],
    "name of a failed directive is its own": [("TimeOut x", f"{FAILED}timeout') - {INTEGER}")],
    "below the bounds": [("maxmemory-samples 0", f"{FAILED}maxmemory-samples') - argument must be between 1 and "
                          "2147483647 inclusive")],
    "negative and unsigned": [("maxclients -1", f"{FAILED}maxclients') - argument must be between 1 and 4294967295 "
                               "inclusive")],
    "not a size": [("proto-max-bulk-len 10x", f"{FAILED}proto-max-bulk-len') - {MEMORY}")],
    "size too small": [("proto-max-bulk-len 1kb", f"{FAILED}proto-max-bulk-len') - argument must be between 1048576 "
                        "and 9223372036854775807 inclusive")],
    "no digits at all are nothing": [("maxmemory ''", "+OK")],
    "percent above 100": [("maxmemory-clients 101%", f"{FAILED}maxmemory-clients') - percentage argument must be less "
                           "or equal to 100")],
    "not a size nor a percentage": [("maxmemory-clients x", f"{FAILED}maxmemory-clients') - argument must be a memory "
                                     "or percent value")],
    "not one of the words": [("loglevel loud", f"{FAILED}loglevel') - argument(s) must be one of the following: debug, "
                              "verbose, notice, warning")],
    "flags that exclude each other": [("shutdown-on-sigterm 'save nosave'", f"{FAILED}shutdown-on-sigterm') - shutdown "
                                       "options SAVE and NOSAVE can't be used simultaneously")],
    "save points": [("save '900 1 60'", f"{FAILED}save') - Invalid save parameters"),
                    ("save '0 1'", f"{FAILED}save') - Invalid save parameters"), ("save ''", "+OK")],
    "output limits": [("client-output-buffer-limit 'pubsub 1 1'", f"{FAILED}client-output-buffer-limit') - {COUNT}"),
                      ("client-output-buffer-limit 'master 1 1 1'", f"{FAILED}client-output-buffer-limit') - {CLASS}"),
                      ("client-output-buffer-limit 'pubsub x 1 1'", f"{FAILED}client-output-buffer-limit') - {LIMIT}"),
                      ("client-output-buffer-limit 'slave 1 1 -1'", f"{FAILED}client-output-buffer-limit') - {LIMIT}")],
    "event classes": [("notify-keyspace-events q", f"{FAILED}notify-keyspace-events') - Invalid event class character. "
                       "Use 'Ag$lshzxeKEtmdn'."), ("notify-keyspace-events AKE", "+OK")],
    "percentiles": [("latency-tracking-info-percentiles '50 101'", f"{FAILED}latency-tracking-info-percentiles') - "
                     "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
                    ("latency-tracking-info-percentiles x", f"{FAILED}latency-tracking-info-percentiles') - Invalid "
                     "latency-tracking-info-percentiles parameters")],
    "scores": [("oom-score-adj-values '1 2'", f"{FAILED}oom-score-adj-values') - wrong number of arguments"),
               ("oom-score-adj-values '1 2 3000'", f"{FAILED}oom-score-adj-values') - Invalid oom-score-adj-values, "
                "elements must be between -2000 and 2000.")],
    "file name": [("cluster-announce-hostname a_b", f"{FAILED}cluster-announce-hostname') - Hostnames may only contain "
                   "alphanumeric characters, hyphens or dots")],
    "title": [("proc-title-template {foo}", f"{FAILED}proc-title-template') - template format is invalid or contains "
               "unknown variables")],
    "all or nothing": [("maxmemory 10000001 maxmemory-clients 200% client-query-buffer-limit invalid",
                        f"{FAILED}maxmemory-clients') - percentage argument must be less or equal to 100")],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_config_set_answers_as_redis_does(session: HeardSession, name: str) -> None:
    for words, reply in CASES[name]:
        assert session.ask("CONFIG", "SET", *shlex.split(words)) == reply.encode() + b"\r\n"


def test_config_get_of_several_patterns_shows_each_name_once(session: HeardSession) -> None:
    reply = session.ask("CONFIG", "GET", "maxmemory", "maxmemory*", "bind", "*of").split(b"\r\n")
    names = [word.decode() for word in reply[2::4]]
    assert sorted(names) == sorted(set(names))
    assert {"maxmemory", "maxmemory-samples", "maxmemory-clients", "bind", "slaveof", "replicaof"} <= set(names)


def test_config_get_answers_a_literal_name_as_it_was_asked(session: HeardSession) -> None:
    assert session.ask("CONFIG", "GET", "MaxClients", "maxclients") == b"*2\r\n$10\r\nMaxClients\r\n$5\r\n10000\r\n"


def test_config_get_is_a_map_in_resp3(session: HeardSession) -> None:
    session.protocol = 3
    assert session.ask("CONFIG", "GET", "timeout") == b"%1\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
    assert session.ask("CONFIG", "GET", "nosuch") == b"%0\r\n"


def test_hidden_directive_is_shown_only_by_its_name(session: HeardSession) -> None:
    assert b"key-load-delay" not in session.ask("CONFIG", "GET", "*")
    assert b"key-load-delay" in session.ask("CONFIG", "GET", "key-load-delay")


def test_directives_of_ours_come_after_those_of_redis(session: HeardSession) -> None:
    names = session.ask("CONFIG", "GET", "*").split(b"\r\n")[2::4]
    ours = [name.encode() for name, directive in DIRECTIVES.items() if directive.ours]
    assert {b"requirepass-file", b"store-quota", b"http-port"} <= set(ours)
    assert names[-len(ours) :] == ours


def test_what_config_get_shows_config_set_takes(session: HeardSession) -> None:
    words = session.ask("CONFIG", "GET", "*").split(b"\r\n")
    for name, value in zip(words[2::4], words[4::4], strict=True):
        directive = session.engine.settings.directive(name.decode())
        if "protected" not in directive.flags and (directive.ours or "immutable" not in directive.flags):
            assert session.ask("CONFIG", "SET", name.decode(), value.decode()) == b"+OK\r\n", name
            assert session.engine.settings.text(name.decode()) == value


def test_ours_that_cannot_change_is_refused_only_another_value(session: HeardSession) -> None:
    assert session.ask("CONFIG", "SET", "requirepass-file", "") == b"+OK\r\n"
    assert session.ask("CONFIG", "SET", "requirepass-file", "/elsewhere").endswith(b"can't set immutable config\r\n")
    assert session.ask("CONFIG", "SET", "store-quota", "1gb").endswith(b"can't set immutable config\r\n")


def test_failed_config_set_changes_nothing(session: HeardSession) -> None:
    before = session.ask("CONFIG", "GET", "*")
    assert session.ask("CONFIG", "SET", "maxmemory", "1mb", "timeout", "5", "hz", "x").startswith(b"-ERR CONFIG SET")
    assert session.ask("CONFIG", "GET", "*") == before


def test_setting_refused_in_use_takes_all_others_back(session: HeardSession) -> None:
    seen: list[int] = []

    def refuse(port: int) -> None:
        if port == 22:
            raise SettingError("Unable to listen on this port. Check server logs.")

    session.engine.settings.on_change("timeout", seen.append)
    session.engine.settings.on_change("port", refuse)
    reply = session.ask("CONFIG", "SET", "timeout", "7", "port", "22")
    assert reply == f"{FAILED}port') - Unable to listen on this port. Check server logs.\r\n".encode()
    assert seen == [7, 0]
    assert session.engine.settings["timeout"] == 0
    assert session.engine.settings["port"] == 6379


@pytest.mark.parametrize(("allowed", "local", "may"), [("no", True, False), ("local", True, True),
                                                       ("local", False, False), ("yes", False, True)])  # fmt: skip
def test_protected_directive_is_set_by_whom_it_may_be(allowed: str, local: bool, may: bool) -> None:
    session = session_with(enable_protected_configs=allowed)
    session.local = local
    reply = session.ask("CONFIG", "SET", "dbfilename", "other.rdb")
    assert reply == (b"+OK\r\n" if may else f"{FAILED}dbfilename') - can't set protected config\r\n".encode())


def test_store_does_not_move_under_a_running_server(tmp_path: Path) -> None:
    session = session_with(enable_protected_configs="yes", dir=str(tmp_path))
    assert session.ask("CONFIG", "SET", "dir", str(tmp_path)) == b"+OK\r\n"
    assert session.ask("CONFIG", "SET", "dir", "/") == (
        f"{FAILED}dir') - can't be changed while the server runs\r\n".encode()
    )
    assert session.engine.settings["dir"] == str(tmp_path).encode()


def test_password_set_by_config_is_not_in_the_slow_log(session: HeardSession) -> None:
    session.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
    session.ask("CONFIG", "SET", "requirepass", "secret")
    session.ask("CONFIG", "SET", "nosuch", "x", "masterauth", "secret")
    reply = session.ask("SLOWLOG", "GET")
    assert b"(redacted)" in reply
    assert b"secret" not in reply


def test_config_get_shows_urls_without_their_passwords_and_config_set_takes_them_so() -> None:
    url = "s3://AK:SECRET@bucket/x?region=eu&secret_key=SECRET"
    session = session_with(cold_store=url, backup_to="s3://AK:SECRET@b/x", register="redis://u:SECRET@h:1")
    shown = session.ask("CONFIG", "GET", "*")
    assert b"SECRET" not in shown
    assert b"s3://AK:***@bucket/x?region=eu&secret_key=***" in shown
    assert session.ask("CONFIG", "SET", "cold-store", "s3://AK:***@bucket/x?region=eu&secret_key=***") == b"+OK\r\n"
    assert session.engine.settings["cold-store"] == url.encode()


def test_resetstat_forgets_calls_and_errors(session: HeardSession) -> None:
    session.ask("NOSUCH")
    session.ask("CONFIG", "GET", "x")
    assert session.ask("CONFIG", "RESETSTAT") == b"+OK\r\n"
    assert session.engine.stats.total_errors == 0
    assert session.engine.stats.commands_processed == 1  # the reset itself


def test_rewrite_without_a_file_is_refused(session: HeardSession) -> None:
    assert session.ask("CONFIG", "REWRITE") == b"-ERR The server is running without a config file\r\n"


def test_rewrite_that_fails_says_why_and_leaves_no_trace(session: HeardSession, tmp_path: Path) -> None:
    session.engine.config_file = str(tmp_path / "missing" / "x.conf")
    assert session.ask("CONFIG", "REWRITE") == b"-ERR Rewriting config file: No such file or directory\r\n"
    assert list(tmp_path.iterdir()) == []


def test_rewrite_writes_what_was_set(session: HeardSession, tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text("# mine\nmaxclients 20\n")
    session.engine.config_file = str(file)
    session.ask("CONFIG", "SET", "maxclients", "30")
    assert session.ask("CONFIG", "REWRITE") == b"+OK\r\n"
    assert file.read_text().startswith("# mine\nmaxclients 30\n")
