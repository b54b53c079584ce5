"""The command line and the configuration file, read and rewritten."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from rlite_pubsub.cli.serving.serve import Configuration, configuration_of
from rlite_pubsub.engine.settings.config_file import SIGNATURE, ConfigFileError, ConfigReader, rewrite, rewritten
from rlite_pubsub.engine.settings.settings import Settings


def read_file(tmp_path: Path, text: str, *flags: str) -> Configuration:
    file = tmp_path / "x.conf"
    file.write_text(text)
    return configuration_of([str(file), *flags])


def test_flags_hold_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    configuration = read_file(tmp_path, "port 1111\nmaxclients 20\n", "--port", "2222")
    assert configuration.settings["port"] == 2222
    assert configuration.settings["maxclients"] == 20
    assert configuration.config_file == str(tmp_path / "x.conf")


def test_flag_takes_all_words_up_to_the_next_flag() -> None:
    settings = configuration_of(["--save", "900", "1", "--bind", "127.0.0.1", "::1", "--port", "7"]).settings
    assert settings["save"] == ((900, 1),)
    assert settings["bind"] == (b"127.0.0.1", b"::1")
    assert settings["port"] == 7


def test_several_words_may_come_in_one_argument() -> None:
    settings = configuration_of(["--port 7", "--client-output-buffer-limit", "pubsub 1mb 0 0"]).settings
    assert settings["port"] == 7
    assert settings["client-output-buffer-limit"].pubsub.hard_bytes == 1 << 20


def test_first_value_may_look_like_a_flag() -> None:
    assert configuration_of(["--requirepass", "--secret", "--port", "7"]).settings["requirepass"] == b"--secret"


@pytest.mark.parametrize("flags", [["--save", "--port", "7"], ["--port", "7", "--save"], ["--save", "", "--port", "7"]])
def test_empty_save_saves_never(flags: list[str]) -> None:
    settings = configuration_of(flags).settings
    assert settings["save"] == ()
    assert settings["port"] == 7


def test_first_save_replaces_the_defaults_and_the_next_add_to_it(tmp_path: Path) -> None:
    assert read_file(tmp_path, "save 900 1\n", "--save", "100", "100").settings.text("save") == b"900 1 100 100"
    assert read_file(tmp_path, "save 900 1\n", "--save", "").settings.text("save") == b""
    assert read_file(tmp_path, "").settings.text("save") == b"3600 1 300 100 60 10000"


def test_comments_blanks_quotes_and_capitals_are_read_as_redis_reads_them(tmp_path: Path) -> None:
    text = '# port 1\n\n  PORT   7\t\r\nrequirepass "a \\"b\\" \\x41"\nlogfile \'\'\n'
    settings = read_file(tmp_path, text).settings
    assert settings["port"] == 7
    assert settings["requirepass"] == b'a "b" A'


FATAL = "\n*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line "


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("# x\n\nport abc\n", [], "3\n>>> 'port abc'\nargument couldn't be parsed into an integer"),
        ("port\n", [], "1\n>>> 'port'\nwrong number of arguments"),
        ('port "7\n', [], "1\n>>> 'port \"7'\nUnbalanced quotes in configuration line"),
        ("port 7\n", ["--port", "x"], "3\n>>> 'port \"x\"'\nargument couldn't be parsed into an integer"),
        ("\nhtp-port 1\n", [], "2\n>>> 'htp-port 1'\nBad directive or wrong number of arguments"),
        ("", ["--port", "1", "2"], "2\n>>> 'port \"1\" \"2\"'\nwrong number of arguments"),
        ("", ["--port", "--bla"], "2\n>>> 'port \"--bla\"'\nargument couldn't be parsed into an integer"),
        ("", ["--replicaof", "127.0.0.1", "abc"], "2\n>>> 'replicaof \"127.0.0.1\" \"abc\"'\nInvalid master port"),
    ],
)
def test_fault_is_told_with_its_line(tmp_path: Path, text: str, flags: list[str], message: str) -> None:
    with pytest.raises(ConfigFileError) as error:
        read_file(tmp_path, text, *flags)
    assert str(error.value) == FATAL + message


def test_file_that_cannot_be_opened_is_named() -> None:
    with pytest.raises(ConfigFileError, match="can't open config file '/nonexistent/x': No such file"):
        configuration_of(["/nonexistent/x"])


def test_log_file_that_cannot_be_opened_stops_the_start() -> None:
    with pytest.raises(ConfigFileError, match="Can't open the log file: No such file"):
        configuration_of(["--logfile", "/nonexistent/log"])


def test_stray_word_is_refused() -> None:
    with pytest.raises(ConfigFileError, match="unknown option -x[.] Try"):
        configuration_of(["-x"])


@pytest.mark.parametrize("flags", [["-s", "./store"], ["--port", "0", "-s", "./store"]])
def test_store_option_of_other_commands_is_answered_with_the_one_of_serve(flags: list[str]) -> None:
    with pytest.raises(ConfigFileError, match="unknown option -s; the folder of the store is --dir"):
        configuration_of(flags)


def test_value_may_look_like_an_option() -> None:
    settings = configuration_of(["--requirepass", "-s", "--slowlog-log-slower-than", "-1"]).settings
    assert settings["requirepass"] == b"-s"
    assert settings["slowlog-log-slower-than"] == -1


@pytest.mark.parametrize("flag", ["--htp-port", "--HTP-PORT 8080"])
def test_unknown_flag_is_answered_with_the_one_that_was_meant(flag: str) -> None:
    with pytest.raises(ConfigFileError, match="unknown option --htp-port; did you mean --http-port[?] Try"):
        configuration_of([flag])


def test_what_is_of_redis_and_does_nothing_is_named(tmp_path: Path) -> None:
    text = "save 900 1\nport 1\nrename-command FLUSHALL x\nlocale-collate C\nrename-command KEYS x\n"
    found = read_file(tmp_path, text, "--io-threads", "4", "--maxmemory", "1gb")
    assert sorted(found.ignored) == ["io-threads", "locale-collate", "rename-command", "save"]


def test_standard_input_comes_between_file_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"port 2\nmaxclients 2\n")))
    settings = read_file(tmp_path, "port 1\nmaxclients 1\ntimeout 1\n", "--port", "3", "-").settings
    assert [settings[name] for name in ("port", "maxclients", "timeout")] == [3, 2, 1]


def test_include_takes_effect_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.inc").write_text("port 2\nmaxclients 2\n")
    (tmp_path / "b.inc").write_text("maxclients 3\n")
    settings = read_file(tmp_path, f"port 1\ninclude {tmp_path}/*.inc\ninclude {tmp_path}/*.none\ntimeout 4\n").settings
    assert [settings[name] for name in ("port", "maxclients", "timeout")] == [2, 3, 4]


def test_missing_include_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match="No such file"):
        read_file(tmp_path, f"include {tmp_path}/none.conf\n")


def test_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match="nested too deeply"):
        read_file(tmp_path, f"include {tmp_path}/x.conf\n")


def test_store_is_in_the_present_folder_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert configuration_of([]).settings.text("dir") == os.fsencode(tmp_path / "store")
    assert configuration_of(["--dir", "x"]).settings.text("dir") == os.fsencode(tmp_path / "x")


# -- rewriting


def test_rewriting_keeps_comments_order_and_unknown_lines() -> None:
    old = b"# first\nport 1\n\nnosuch x y\nslave-priority 3\n# last\n"
    new = rewritten(old, Settings({"port": "2", "replica-priority": "4", "dir": "/x"}))
    expected = b"# first\nport 2\n\nnosuch x y\nreplica-priority 4\n# last\n" + SIGNATURE + b'\ndir "/x"\n'
    assert new == expected


def test_rewriting_again_changes_nothing() -> None:
    settings = Settings({"port": "2", "save": "900 1 300 10", "requirepass": 'a"b'})
    once = rewritten(b"save 1 1\nsave 2 2\nsave 3 3\n", settings)
    assert rewritten(once, settings) == once
    assert once.count(b"save ") == 2


def test_rewritten_file_gives_the_same_settings(tmp_path: Path) -> None:
    settings = Settings({"requirepass": 'a "b"\\ \x01', "maxmemory-clients": "5%", "save": "", "unixsocketperm": "700",
                         "shutdown-on-sigint": "nosave now", "notify-keyspace-events": "AnK", "bind": "::1",
                         "client-output-buffer-limit": "pubsub 1025 2048 3", "latency-tracking-info-percentiles": "",
                         "dir": str(tmp_path), "oom-score-adj-values": "1 2 3", "hz": "50"})  # fmt: skip
    file = tmp_path / "x.conf"
    rewrite(file, settings, everything=True)
    again = configuration_of([str(file)]).settings
    for name in again._values:
        assert again[name] == settings[name], name


def test_rewriting_keeps_the_mode_of_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text("port 1\n")
    file.chmod(0o640)
    rewrite(file, Settings())
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_rewriting_a_link_changes_what_it_points_to(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text("port 1\n")
    link = tmp_path / "link.conf"
    link.symlink_to(file)
    rewrite(link, Settings({"port": "5"}))
    assert link.is_symlink()
    assert file.read_text().startswith("port 5\n")


def test_users_of_the_file_are_taken_in_and_written_back() -> None:
    reader = ConfigReader(Settings())
    reader.read(b"user alice on >x +get (~a +set)\nuser bob +nothing\nport 5")
    assert reader.settings.users == {b"alice": [b"on", b">x", b"+get", b"(~a +set)"], b"bob": [b"+nothing"]}
    old = b"user alice on >x\nport 6379\nuser bob off\nuser carl on\n"
    new = rewritten(old, Settings({"port": "6379"}), [b"user alice off", b"user dora on"])
    assert [line for line in new.split(b"\n") if line.startswith(b"user")] == [b"user alice off", b"user dora on"]
    assert rewritten(old, Settings()).count(b"user ") == 3


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (b"user a on\nuser a off", "Duplicate user found"),
        (b"user a on %x", "declaration '%x': Syntax error"),
        (b"user a (~x", "Unmatched parenthesis"),
    ],
)
def test_a_user_that_makes_no_sense_stops_the_start(lines: bytes, why: str) -> None:
    with pytest.raises(ConfigFileError, match=why):
        ConfigReader(Settings()).read(lines)
