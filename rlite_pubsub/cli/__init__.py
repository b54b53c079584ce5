"""`rlite-pubsub`: the command line, a file for each command."""

from rlite_pubsub.cli.command_line import main

__all__ = ["main"]
