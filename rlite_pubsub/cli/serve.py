"""`rlite-pubsub serve`: the server."""

from __future__ import annotations

import sys


def main(words: list[str]) -> int:
    """Read the configuration, then serve until told to stop."""
    from rlite_pubsub.cli import config, logs
    from rlite_pubsub.server import supervision

    try:
        configuration = config.read(words[1:])
    except config.ConfigFileError as error:
        print(error, file=sys.stderr)
        return 1
    settings = configuration.settings
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
