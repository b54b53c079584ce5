"""`rlite-pubsub cli`: as redis-cli byte for byte where it is no terminal, and a prompt where it is one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest
import redis
from patience import PATIENCE_S, until
from server_process import Serve, ServerProcess

from rlite_pubsub import Server
from rlite_pubsub.cli.prompt import shown
from rlite_pubsub.cli.prompt.manual import Manual
from rlite_pubsub.protocol.decoder import told_apart
from rlite_pubsub.protocol.frames import Frames

COMMAND = [sys.executable, "-m", "rlite_pubsub", "cli"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LINES = rb"""
PING
GET text
GET "no such"
STRLEN text
HGETALL hash
SMEMBERS set
ZRANGE scores 0 -1 WITHSCORES
LRANGE list 0 -1
LRANGE nothing 0 -1
XRANGE topic - +
XINFO STREAM topic FULL
COMMAND INFO get set
COMMAND DOCS xadd
EVAL "return {1, {}, {'a', {'b'}}, false, 'c', {err='ERR x'}, {ok='FINE'}}" 0
EVAL "redis.setresp(3) return {map={a={map={b={1,2}}}, c={double=2.5}}}" 0
EVAL "redis.setresp(3) return {set={x=true}}" 0
nosuch "a b"
GET "unbalanced
MULTI
INCR nosuchcounter
GET text
DISCARD
CONFIG GET maxclients

INFO commandstats_none
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        client = redis.Redis(port=server.port)
        client.set("text", b'a "b"\n\xff\x01\xc3\xa9')
        client.hset("hash", mapping={"f": "v", "g": ""})
        client.sadd("set", "m")
        client.zadd("scores", {"a": 1.5, "b": 3})
        client.rpush("list", *range(12))
        client.xadd("topic", {"k": "v"}, id="1-1")
        client.xgroup_create("topic", "g", 0)
        yield server


def run(*words: str | bytes, text: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words], input=text, capture_output=True, timeout=PATIENCE_S, env=os.environ | environment
    )


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
@pytest.mark.parametrize(
    "form", [[], ["-3"], ["--no-raw"], ["--no-raw", "-3"], ["--csv"], ["--json"], ["--quoted-json"]], ids=str
)
def test_what_is_printed_is_what_redis_cli_prints(server: Server, form: list[str]) -> None:
    place = ["-p", str(server.port), *form]
    theirs = subprocess.run(["redis-cli", *place], input=LINES, capture_output=True, timeout=PATIENCE_S)
    ours = run(*place, text=LINES)
    assert ours.stdout.split(b"\n") == theirs.stdout.split(b"\n")
    assert ours.returncode == theirs.returncode == 0


def test_single_command_is_sent_as_bytes_and_what_looks_like_an_option_is_an_argument(server: Server) -> None:
    port = str(server.port)
    assert run("-p", port, "SET", b"\xff\xfe", b"-1\xfd").stdout == b"OK\n"
    assert run("-p", port, "-n", "0", "GET", b"\xff\xfe").stdout == b"-1\xfd\n"
    assert run("-p", port, "-x", "SET", "piped", text=b"a\nb").stdout == b"OK\n"
    assert run("-u", f"redis://127.0.0.1:{port}/0", "--no-raw", "GET", "piped").stdout == b'"a\\nb"\n'
    assert run("-p", port, "-r", "3", "INCR", "counted").stdout == b"1\n2\n3\n"


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nosuch"], b""),
        (["nosuch"], b""),
        (["-e", "nosuch"], b""),
        (["-a", "wrong", "--no-auth-warning", "ping"], b""),
        (["quit"], b""),
        ([], b"ping\nquit\nping\n"),
        (["-e"], b"nosuch\nping\n"),
        ([], b"3 ping\n0 ping\n-1 ping\n+1 ping\n1x ping\n3\n"),
        ([], b"connect\nconnect localhost\nconnect a b c\nping\n"),
        ([], b"connect 127.0.0.1 PORT\nping\nconnect 127.0.0.1 1\nping\n"),
        (["-p", "1", "ping"], b""),
        (["-p", "1"], b"ping\nping\n"),
        (["-h", "no.such.host.invalid", "ping"], b""),
    ],
    ids=str,
)
def test_ends_as_redis_cli_does(server: Server, words: list[str], text: bytes) -> None:
    line = ["-p", str(server.port), *words]
    text = text.replace(b"PORT", b"%d" % server.port)
    theirs = subprocess.run(["redis-cli", *line], input=text, capture_output=True, timeout=PATIENCE_S)
    ours = run(*line, text=text)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert bool(ours.stderr) == bool(theirs.stderr)


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
def test_line_after_a_lost_connection_connects_again_as_with_redis_cli() -> None:
    text = b"client kill type normal skipme no\nping\nping\n"
    with Server() as server:
        line = ["-p", str(server.port)]
        theirs = subprocess.run(["redis-cli", *line], input=text, capture_output=True, timeout=PATIENCE_S)
        ours = run(*line, text=text)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (0, b"1\nPONG\n")
    assert ours.stderr.count(b"Error: ") == theirs.stderr.count(b"Error: ") == 1


def test_server_that_is_shut_down_is_no_failure(serve: Serve) -> None:
    for words, text in ((["SHUTDOWN"], b""), ([], b"PING\nSHUTDOWN NOSAVE\n")):
        started: ServerProcess = serve()
        ended = run("-p", str(started.port), *words, text=text)
        assert (ended.returncode, ended.stderr) == (0, b"")


def test_commands_are_not_sent_to_another_database_than_was_named(server: Server) -> None:
    ended = run("-p", str(server.port), "-n", "99", "DBSIZE")
    assert ended.returncode == 1 and ended.stdout == b""
    assert b"SELECT failed: ERR DB index is out of range" in ended.stderr


def test_errors_are_output_unless_they_are_to_fail(server: Server) -> None:
    port = str(server.port)
    assert run("-p", port, "NOSUCH").returncode == 0
    failed = run("-p", port, "-e", "NOSUCH")
    assert (failed.returncode, failed.stdout) == (1, b"")
    assert b"unknown command 'NOSUCH'" in failed.stderr


def test_command_is_repeated_for_ever_until_its_reader_goes_away_which_is_no_failure(server: Server) -> None:
    command = f"{shlex.join([*COMMAND, '-p', str(server.port), '-3', '-r', '-1', 'PING'])} | head -n 1; "
    ended = subprocess.run(
        ["bash", "-c", command + 'echo "${PIPESTATUS[0]}"'], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (ended.stdout, ended.stderr) == ("PONG\n0\n", "")


@pytest.fixture(scope="module")
def many_keys(server: Server) -> bytes:
    """The port of a server with keys of every type in its database 3, more than one SCAN lists."""
    client = redis.Redis(port=server.port, db=3)
    client.mset({f"text:{number}": "x" * number for number in range(50)})
    client.set(b"\xff\n", "")
    client.hset("hash", mapping={"f": "v", "g": ""})
    client.sadd("set", *"abc")
    client.zadd("scores", {"a": 1.5})
    client.rpush("list", *range(12))
    return str(server.port).encode()


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
@pytest.mark.parametrize(
    "words",
    [
        ["--scan"],
        ["--scan", "--no-raw", "-i", "0.001"],
        ["--scan", "--pattern", "text:1*"],
        ["--scan", "--quoted-pattern", r'"\xff*"'],
        ["--bigkeys"],
        ["--bigkeys", "--pattern", "[hl]*"],
        ["--bigkeys", "--pattern", "nosuch"],
        ["--memkeys"],
        ["--memkeys", "--memkeys-samples", "2"],
        ["--quoted-input", "ECHO", r'"a\x00b"'],
    ],
    ids=" ".join,
)
def test_keys_are_listed_and_measured_as_redis_cli_does(many_keys: bytes, words: list[str]) -> None:
    place = [b"-p", many_keys, b"-n", b"3"]
    theirs = subprocess.run(["redis-cli", *place, *words], capture_output=True, timeout=PATIENCE_S)
    ours = run(*place, *words)
    assert ours.returncode == theirs.returncode == 0
    assert theirs.stdout
    # redis-cli has the types of its summary in another order each time
    assert sorted(ours.stdout.split(b"\n")) == sorted(theirs.stdout.split(b"\n"))


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
@pytest.mark.parametrize(
    "data",
    [
        b"SET piped 1\r\nGET piped\r\n",
        b'*1\r\n$4\r\nPING\r\nNOSUCH\r\nECHO "a b"',
        b"",
        b"*2\r\n$3\r\nGET\r\n",
        b"*x\r\n",
    ],
)
def test_input_is_piped_and_its_replies_are_counted_as_by_redis_cli(many_keys: bytes, data: bytes) -> None:
    words = [b"-p", many_keys, b"-n", b"3", b"--pipe", b"--pipe-timeout", b"60"]
    theirs = subprocess.run(["redis-cli", *words], input=data, capture_output=True, timeout=PATIENCE_S)
    ours = run(*words, text=data)
    assert (ours.stdout, ours.returncode) == (theirs.stdout, theirs.returncode)
    assert theirs.stderr.splitlines()[:1] == ours.stderr.splitlines()[:1]


def test_what_is_piped_may_have_more_replies_than_the_connection_holds(many_keys: bytes) -> None:
    large = b"ECHO " + b"x" * 10_000 + b"\r\n"
    done = run(b"-p", many_keys, b"--pipe", text=large * 2000)
    assert done.stdout.endswith(b"errors: 0, replies: 2000\n")


def test_store_takes_what_is_piped_and_lists_its_keys_without_a_server(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    sets = b"".join(b"*3\r\n$3\r\nSET\r\n$5\r\nk%04d\r\n$1\r\nv\r\n" % number for number in range(5000))
    assert run("-s", store, "--create", "--pipe", text=sets).stdout.endswith(b"errors: 0, replies: 5000\n")
    listed = run("-s", store, "--scan", "--pattern", "k000*").stdout.split()
    assert sorted(listed) == [b"k%04d" % number for number in range(10)]
    broken = run("-s", store, "--pipe", text=b"*x\r\n")
    assert broken.returncode == 1
    assert b"Protocol error: invalid multibulk length" in broken.stderr


def test_line_of_figures_comes_until_interrupted(many_keys: bytes) -> None:
    words = [*COMMAND, "-p", many_keys, "--stat", "-i", "0.01"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as rolling:
        assert rolling.stdout is not None
        lines = [rolling.stdout.readline() for _ in range(24)]
        rolling.send_signal(signal.SIGINT)
        assert rolling.wait(PATIENCE_S) == 130
    assert lines[0] == lines[22] == b"------- data ------ --------------------- load -------------------- - child -\n"
    assert lines[1] == b"keys       mem      clients blocked requests            connections          \n"
    assert re.fullmatch(rb"\d+ +[\d.]+M +[1-9] +0 +\d+ \(\+0\) +\d+ +\n", lines[2])
    assert re.search(rb" \(\+[1-9]\d*\) ", lines[3])


def test_script_of_a_file_is_evaluated_with_keys_and_arguments(many_keys: bytes, tmp_path: Path) -> None:
    script = tmp_path / "script.lua"
    script.write_text("return {KEYS[1], ARGV[1], #KEYS}")
    assert run(b"-p", many_keys, "--eval", str(script), "k", ",", "a").stdout == b"k\na\n1\n"
    nothing = run(b"-p", many_keys, "--eval", str(tmp_path / "none.lua"))
    assert nothing.returncode == 1
    assert b"Can't open file" in nothing.stderr


def test_place_where_nobody_is_is_named(tmp_path: Path) -> None:
    gone = run("-p", "1", "PING")
    assert gone.returncode == 1
    assert b"Could not connect to Redis at 127.0.0.1:1: Connection refused" in gone.stderr
    nowhere = run("-s", str(tmp_path / "none"), "PING")
    assert nowhere.returncode == 1
    assert f"there is no store in {tmp_path / 'none'}".encode() in nowhere.stderr
    assert not (tmp_path / "none").exists()


def test_store_is_used_without_a_server(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    assert run("-s", store, "--create", "XADD", "t", "1-1", "k", "v").stdout == b"1-1\n"
    assert run("-s", store, "--no-raw", "-3", "XRANGE", "t", "-", "+").stdout.endswith(b'2) "v"\n')
    assert run("-s", store, text=b"SELECT 2\nSET a b\nGET a\n").stdout == b"OK\nOK\nb\n"


def test_user_password_and_what_warns_of_it(server: Server) -> None:
    port = str(server.port)
    redis.Redis(port=server.port).execute_command("ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all")
    with_flag = run("-p", port, "--user", "ann", "-a", "secret", "ACL", "WHOAMI")
    assert with_flag.stdout == b"ann\n"
    assert b"may not be safe" in with_flag.stderr
    assert run("-p", port, "--user", "ann", "ACL", "WHOAMI", REDISCLI_AUTH="secret").stdout == b"ann\n"
    refused = run("-p", port, "--user", "ann", "--no-auth-warning", "-a", "wrong", "ACL", "WHOAMI")
    assert (refused.returncode, refused.stdout) == (0, b"default\n")  # as redis-cli goes on
    assert b"AUTH failed: WRONGPASS" in refused.stderr


def test_replies_are_whole_wherever_their_bytes_are_cut() -> None:
    wire = b"*2\r\n$3\r\na\r\n\r\n:1\r\n>2\r\n+x\r\n$-1\r\n|1\r\n+k\r\n+v\r\n%1\r\n$0\r\n\r\n*0\r\n"
    wire += b"-ERR x\r\n,1.5\r\n*-1\r\n"
    whole = Frames().feed(wire)
    assert [told_apart(frame) for frame in whole] == [
        [b"a\r\n", 1],
        [b"x", None],
        [(b"", [])],
        b"ERR x",
        1.5,
        None,
    ]
    for size in (1, 2, 3, 7):
        frames = Frames()
        found = [each for at in range(0, len(wire), size) for each in frames.feed(wire[at : at + size])]
        assert found == whole
    with pytest.raises(ValueError, match="is not a reply"):
        Frames().feed(b"HTTP/1.1 200 OK\r\n")


def test_manual_spells_arguments_and_completes_commands_subcommands_and_words(server: Server) -> None:
    client = redis.Redis(port=server.port)
    for protocol in (2, 3):
        manual = Manual(told_apart(_wire_of(client.connection_pool.connection_kwargs["port"], protocol)))
        entry = manual.entry_of(["set", "a"])
        assert entry is not None
        assert entry.syntax.startswith("key value [NX|XX] [GET] [EX seconds|PX milliseconds|")
        assert manual.completions([], "xre") == ["xread", "xreadgroup", "xrevrange"]
        assert manual.completions(["config"], "g") == ["get"]
        assert "MAXLEN" in manual.completions(["XADD", "t"], "MA")
        assert manual.completions(["help"], "@pub") == ["@pubsub"]
        assert [each.name for each in manual.about(["xrange"])] == ["XRANGE"]
        assert {"PUBLISH", "SUBSCRIBE"} <= {each.name for each in manual.about(["@pubsub"])}


def _wire_of(port: int, protocol: int) -> bytes:
    import socket

    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as peer:
        peer.sendall(b"HELLO %d\r\n" % protocol)
        frames, found = Frames(), list[bytes]()
        while not found:
            found = frames.feed(peer.recv(65536))
        peer.sendall(b"COMMAND DOCS\r\n")
        found = []
        while not found:
            found = frames.feed(peer.recv(65536))
    return found[0]


def test_nested_maps_begin_on_a_line_of_their_own_where_they_take_several() -> None:
    reply = told_apart(b"%1\r\n+x\r\n%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n")
    assert shown.for_terminal(reply) == (b"1# x => \n   1# a => \n      1) (integer) 1\n      2) (integer) 2\n")


class Terminal:
    """A prompt in a pseudo-terminal, and whoever types there."""

    def __init__(self, history: Path, *words: str, is_read: bool = True) -> None:
        self.descriptor, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = os.environ | {"TERM": "xterm", "RLITE_CLI_HISTORY": str(history)}
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C is a signal to whoever has the terminal
        )
        os.close(other)
        self._written: list[bytes] = []
        self._begin = 0
        self._screen = pyte.Screen(120, 40)
        self._screen.write_process_input = self.press  # what a terminal answers: where its cursor is
        self._drawn = pyte.ByteStream(self._screen)
        if is_read:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:  # the other end is closed
                return
            self._written.append(data)
            self._drawn.feed(data)

    def text(self) -> str:
        """What was written since `begin`, without colours and movements.

        A letter that is on the screen already is not written again: what is drawn over something else is whole on the
        screen alone (`draws`).
        """
        return ESCAPE.sub("", b"".join(self._written[self._begin :]).decode(errors="replace")).replace("\r", "")

    def begin(self) -> None:
        self._begin = len(self._written)

    def shows(self, text: str) -> None:
        try:
            until(lambda: text in self.text(), repr(text))
        except AssertionError as failure:
            raise AssertionError(f"{failure}: {self.text()[-2000:]}") from None

    def draws(self, text: str) -> None:
        until(lambda: text in "\n".join(self._screen.display), f"{text!r} on the screen")

    def press(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())

    def enter(self, line: str, shows: str) -> None:
        """What it shows comes after what was there."""
        self.begin()
        self.press(line + "\r")
        self.shows(shows)


def test_prompt_shows_the_database_a_transaction_messages_help_and_keeps_a_history(
    serve: Serve, tmp_path: Path
) -> None:
    started: ServerProcess = serve()
    history = tmp_path / "history"
    client = redis.Redis(port=started.port)
    terminal = Terminal(history, "-p", str(started.port), "-3")
    try:
        terminal.shows(f"127.0.0.1:{started.port}>")
        terminal.enter("SELECT 3", f"{started.port}[3]>")
        terminal.enter("MULTI", f"{started.port}[3](TX)>")
        terminal.enter("SET a 1", "QUEUED")
        terminal.enter("EXEC", "1) OK")
        terminal.enter("help publish", "summary: Post a message to a channel")
        terminal.enter("AUTH a secret", "WRONGPASS")
        terminal.enter("SUBSCRIBE news", "(subscribed mode)>")
        terminal.press("GE")
        assert client.publish("news", "hello") == 1
        terminal.shows('3) "hello"')
        terminal.enter("T a", '"1"')
        terminal.draws("Messages are shown as they come; Ctrl-C unsubscribes from all")
        terminal.press("xreadg\t")
        terminal.draws("> xreadgroup")
        terminal.draws("XREADGROUP GROUP group consumer [COUNT count]")
        terminal.press("\x03")
        terminal.enter("BLPOP nothing 0", "BLPOP")
        until(lambda: client.info("clients")["blocked_clients"], "the client that waits")
        terminal.press("\x03")
        terminal.shows("interrupted")
        terminal.enter("PING", "PONG")
        terminal.press("\x04")
        assert terminal.process.wait(PATIENCE_S) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.descriptor)
        client.close()
    kept = history.read_text()
    assert "+SET a 1" in kept and "secret" not in kept
    assert history.stat().st_mode & 0o077 == 0


def test_ctrl_c_empties_the_line_then_unsubscribes_then_leaves_the_prompt(serve: Serve, tmp_path: Path) -> None:
    started: ServerProcess = serve()
    client = redis.Redis(port=started.port)
    terminal = Terminal(tmp_path / "history", "-p", str(started.port), "-n", "2")
    try:
        terminal.shows(f"127.0.0.1:{started.port}[2]>")
        terminal.enter("SUBSCRIBE news", "(subscribed mode)>")
        terminal.press("PING")
        terminal.shows("PING")
        terminal.press("\x03")
        terminal.enter("PING", '1) "pong"')
        assert client.pubsub_numsub("news") == [(b"news", 1)]
        terminal.begin()
        terminal.press("\x03")
        terminal.shows(f"127.0.0.1:{started.port}[2]>")
        until(lambda: client.pubsub_numsub("news") == [(b"news", 0)], "the end of the subscription")
        terminal.enter("SET a 1", "OK")
        assert redis.Redis(port=started.port, db=2).get("a") == b"1"
        terminal.press("\x03")
        assert terminal.process.wait(PATIENCE_S) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.descriptor)
        client.close()


def test_prompt_connects_to_another_server_and_to_one_that_comes_later(serve: Serve, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    terminal = Terminal(tmp_path / "history", "-p", str(free))
    try:
        terminal.shows(f"Could not connect to Redis at 127.0.0.1:{free}")
        terminal.shows("not connected>")
        terminal.enter("PING", "Could not connect")
        started: ServerProcess = serve()
        terminal.enter(f"connect localhost {started.port}", f"localhost:{started.port}>")
        terminal.enter("PING", "PONG")
        terminal.enter("help ping", "summary: Ping the server")
        terminal.enter("connect localhost 70000", "70000 is no port")
        terminal.enter("0 PING", "Invalid redis-cli repeat command option value.")
        terminal.enter("SHUTDOWN", "not connected>")
        assert "Error" not in terminal.text()
        terminal.enter("exit", "")
        assert terminal.process.wait(PATIENCE_S) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.descriptor)


def test_prompt_without_its_library_names_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['prompt_toolkit'] = None; from rlite_pubsub.cli import main; sys.exit(main())"
    descriptor, other = pty.openpty()
    ended = subprocess.run(
        [sys.executable, "-c", code, "cli"], stdin=other, capture_output=True, text=True, timeout=PATIENCE_S
    )
    os.close(descriptor)
    os.close(other)
    assert ended.returncode == 1
    assert "the prompt needs the extra `cli`" in ended.stderr


def test_terminal_that_does_not_read_holds_up_what_is_printed_and_not_the_memory(tmp_path: Path) -> None:
    with Server() as server, redis.Redis(port=server.port) as client:
        terminal = Terminal(tmp_path / "history", "-p", str(server.port), is_read=False)

        def echoed() -> int:
            return int(client.info("commandstats").get("cmdstat_echo", {"calls": 0})["calls"])

        def is_held_up() -> bool:
            before = echoed()
            time.sleep(0.3)
            return 0 < before == echoed()

        try:
            os.write(terminal.descriptor, b"100000000 ECHO " + b"x" * 200 + b"\r")
            until(is_held_up, "the terminal holds it up")
            assert echoed() < 10_000
        finally:
            terminal.process.kill()
            terminal.process.wait(PATIENCE_S)
            os.close(terminal.descriptor)
