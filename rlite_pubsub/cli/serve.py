"""`rlite-pubsub serve [conf-file] [--directive value ...] [-]`: the server, with redis-server's command line.

The file comes first, then standard input (for a `-` that is the first or the last argument), then the flags: what is
said last holds. A flag takes all that follows it up to the next flag; its first value may look like a flag itself.

Here `dir` is the folder of the store, by default `./store`. A relative path is taken from where the server is started.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import rlite_pubsub.commands.all  # noqa: F401  rules of users name commands
from rlite_pubsub.cli import process_list
from rlite_pubsub.engine.settings.config_file import ConfigFileError, ConfigReader, file_text, read_password
from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.settings.spelling import quoted
from rlite_pubsub.protocol import inline


def main(words: list[str]) -> int:
    """Read the configuration, then serve until told to stop."""
    from rlite_pubsub.cli import logs
    from rlite_pubsub.server import supervision

    try:
        configuration = configuration_of(words[1:])
    except ConfigFileError as error:
        print(error, file=sys.stderr)
        return 1
    settings = configuration.settings
    process_list.hide(settings[name] for name, directive in DIRECTIVES.items() if "secret" in directive.flags)
    supervision.daemonize(settings)
    logs.start(settings)
    for warning in configuration.warnings:
        logs.log.warning("%s", warning)

    from rlite_pubsub.server.main import StartupError, run

    try:
        return run(settings, configuration.config_file)
    except StartupError as error:
        logs.log.warning("%s", error)
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
    warnings: list[str]
    """What was passed over in the file, for the log."""


def configuration_of(args: list[str]) -> Configuration:
    """Settings as the arguments say. Raises ConfigFileError, whose message is meant for the user."""
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
    _check_log_file(reader.settings)
    return Configuration(reader.settings, config_file, reader.warnings)


def _options(words: list[bytes]) -> bytes:
    """The flags, written as lines of a configuration file."""
    lines: list[list[bytes]] = []
    complete = True  # the last flag has a value, so that the next word with two dashes is a flag
    for word, following in zip(words, [*words[1:], b"--"], strict=False):
        if complete and word.startswith(b"--"):
            lines.append([word[2:]])
            complete = len(inline.split(word) or ()) != 1  # "--port 6380" in one argument
            if word.lower() == b"--save" and following.startswith(b"--"):
                lines[-1].append(b'""')
                complete = True
        elif not lines:
            raise ConfigFileError(f"'{os.fsdecode(word)}' is neither a flag nor a configuration file in first place")
        else:
            lines[-1].append(quoted(word))
            complete = True
    return b"\n".join(b" ".join(line) for line in lines)


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
