"""`rlite-pubsub`: the command line. Nothing heavy is imported before it is known to be needed."""

from __future__ import annotations

import sys

USAGE = """\
Usage: rlite-pubsub serve [/path/to/redis.conf] [--directive value ...] [-]
       rlite-pubsub publish [-s STORE] CHANNEL MESSAGE
       rlite-pubsub subscribe [-s STORE] CHANNEL ...
       rlite-pubsub psubscribe [-s STORE] PATTERN ...
       rlite-pubsub channels [-s STORE] [PATTERN]
       rlite-pubsub subscribers [-s STORE]
       rlite-pubsub doctor [-s STORE]
       rlite-pubsub --version
       rlite-pubsub --help

STORE is a folder, or for the first four also a redis:// URL; by default ./store.

serve takes redis-server's flags and configuration files; a lone `-` reads configuration from standard input.
The store is in --dir, by default ./store.

Examples:
       rlite-pubsub serve
       rlite-pubsub serve --port 7777 --dir /var/lib/rlite-pubsub
       rlite-pubsub serve /etc/redis/redis.conf --loglevel verbose
       echo 'maxclients 128' | rlite-pubsub serve -
"""


_STORE_COMMANDS = frozenset(("publish", "subscribe", "psubscribe", "channels", "subscribers", "doctor"))


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; the exit code is 0 if all went well and 1 if not."""
    args = sys.argv[1:] if argv is None else argv
    if not args:
        print(USAGE, end="", file=sys.stderr)
        return 1
    word, rest = args[0], args[1:]
    if word in ("-h", "--help", "help") or (word == "serve" and rest[:1] in (["-h"], ["--help"])):
        print(USAGE, end="")
        return 0
    if word in ("-v", "--version") or (word == "serve" and rest[:1] in (["-v"], ["--version"])):
        return _print_version()
    if word == "serve":
        return serve(rest)
    if word in _STORE_COMMANDS:
        from rlite_pubsub import cli_store

        return cli_store.main(args)
    print(f"rlite-pubsub: unknown subcommand '{word}'. Try rlite-pubsub --help.", file=sys.stderr)
    return 1


def serve(args: list[str]) -> int:
    """Read the configuration, then serve until told to stop."""
    from rlite_pubsub import config, logs, supervision

    try:
        configuration = config.read(args)
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


def _print_version() -> int:
    from rlite_pubsub import __version__

    print(f"rlite-pubsub {__version__} (speaks Redis 7.0.15)")
    return 0
