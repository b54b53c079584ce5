"""The reply to `<container> HELP`: each subcommand's grammar, and under it, indented, what it does."""

from __future__ import annotations

from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.protocol.replies import Reply, Status


def help_reply(args: list[bytes], *lines: str) -> Reply:
    """`lines` between the heading that names the container as it was asked for and the line on HELP itself."""
    heading = b"%b <subcommand> [<arg> [value] [opt] ...]. Subcommands are:" % c_string(args[0]).upper()
    return [Status(heading), *(Status(line.encode()) for line in (*lines, "HELP", "    Prints this help."))]
