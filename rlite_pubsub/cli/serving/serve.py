"""`rlite-pubsub serve [conf-file] [--directive value ...] [-]`: the server, with redis-server's command line.

The file comes first, then standard input (for a `-` that is the first or the last argument), then the flags: what is
said last holds. A flag takes all that follows it up to the next flag; its first value may look like a flag itself.

Here `dir` is the folder of the store, by default `./store`. A relative path is taken from where the server is started.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import rlite_pubsub.commands.all  # noqa: F401  rules of users name commands
from rlite_pubsub.cli.parser import meant, refusal
from rlite_pubsub.engine.settings.config_file import ConfigFileError, ConfigReader, file_text, read_password
from rlite_pubsub.engine.settings.directives import PRIMARY
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.settings.spelling import quoted
from rlite_pubsub.engine.settings.themes import IGNORED
from rlite_pubsub.protocol import inline

if TYPE_CHECKING:
    from rlite_pubsub.server.node import Node

PROGRAM = "rlite-pubsub serve"
MORE_NAMES = ("user", "include")
"""What a file has beside directives, and a flag may be, too."""


def main(words: list[str]) -> int:
    """Read the configuration, then serve until told to stop."""
    if words[:1] in (["-h"], ["--help"]):
        from rlite_pubsub.cli.serving.flags import help_text

        print(help_text(everything=words[1:2] == ["all"]), end="")
        return 0
    return _serve(words)


def _serve(words: list[str]) -> int:
    from rlite_pubsub.cli.serving import logs
    from rlite_pubsub.server import supervision

    try:
        configuration = configuration_of(words)
    except ConfigFileError as error:
        print(error, file=sys.stderr)
        return 1
    settings = configuration.settings
    supervision.daemonize(settings)
    logs.start(settings)
    if configuration.ignored:
        logs.log.warning("Directives of Redis that do nothing here: %s", ", ".join(configuration.ignored))

    from rlite_pubsub.cli.serving.banner import banner
    from rlite_pubsub.server.main import StartupError, run

    def announce(node: Node) -> None:
        for line in banner(node):
            logs.log.info("%s", line)

    try:
        return run(settings, configuration.config_file, announce)
    except StartupError as error:
        error.log()
        if settings["logfile"]:
            print(error, file=sys.stderr)
        return 1
    finally:
        supervision.stopped(settings)


class Configuration(NamedTuple):
    """All that a start needs to know."""

    settings: Settings
    config_file: str | None
    """Absolute."""
    ignored: list[str]
    """What was said and does nothing here."""


def configuration_of(args: list[str]) -> Configuration:
    """Settings as the arguments say; a umask that they say holds from now on, for the log is the first file made.
    Raises ConfigFileError, whose message is meant for the user."""
    words = [os.fsencode(arg) for arg in args]
    config_file = None
    text = b""
    from_input = words[:1] == [b"-"] or words[-1:] == [b"-"]
    if words[:1] == [b"-"]:
        words.pop(0)
    elif words and not words[0].startswith(b"-"):
        config_file = os.path.abspath(os.fsdecode(words.pop(0)))
        text = file_text(config_file)
    if words[-1:] == [b"-"]:
        words.pop()
    if from_input:
        text += sys.stdin.buffer.read()
    reader = ConfigReader(Settings())
    reader.read(text, _options(words))
    read_password(reader.settings)
    if "umask" in reader.settings.said:
        os.umask(reader.settings["umask"])
    _check_log_file(reader.settings)
    said = (name for name in IGNORED if name in reader.settings.said)
    return Configuration(reader.settings, config_file, [*said, *reader.passed_over])


def _options(words: list[bytes]) -> bytes:
    """Return the flags, written as lines of a configuration file."""
    lines: list[list[bytes]] = []
    complete = True  # the last flag has a value, so that the next word with two dashes is a flag
    for word, following in zip(words, [*words[1:], b"--"], strict=False):
        if complete and word.startswith(b"--"):
            lines.append([word[2:]])
            _check_name(word)
            complete = len(inline.split(word) or ()) != 1  # "--port 6380" in one argument
            if word.lower() == b"--save" and following.startswith(b"--"):
                lines[-1].append(b'""')
                complete = True
        elif complete and word == b"-s":
            raise ConfigFileError(refusal(PROGRAM, "unknown option -s; the folder of the store is --dir"))
        elif not lines:
            what = "unknown option" if word.startswith(b"-") else "unexpected argument"
            raise ConfigFileError(refusal(PROGRAM, f"{what} {os.fsdecode(word)}"))
        else:
            lines[-1].append(quoted(word))
            complete = True
    return b"\n".join(b" ".join(line) for line in lines)


def _check_name(flag: bytes) -> None:
    """Check that there is such a directive. Raises ConfigFileError."""
    words = inline.split(flag[2:])
    name = words[0].decode("utf-8", "backslashreplace").lower() if words else ""
    if name not in PRIMARY and name not in MORE_NAMES:
        near = meant(f"--{name}", [f"--{known}" for known in (*PRIMARY, *MORE_NAMES)])
        raise ConfigFileError(refusal(PROGRAM, f"unknown option --{name}{near}"))


def _check_log_file(settings: Settings) -> None:
    path = settings["logfile"]
    if path:
        try:
            with open(path, "ab"):
                pass
        except OSError as error:
            raise ConfigFileError(
                f"\n*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nCan't open the log file: {error.strerror}"
            ) from error
