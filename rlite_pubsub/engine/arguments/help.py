"""The reply to `<container> HELP`: each subcommand's grammar, and under it, indented, what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlite_pubsub.engine.table import command
from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.protocol.replies import Reply, Status

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

_SUMMARY = "Show helpful text about the different subcommands"


def help_reply(args: list[bytes], *lines: str) -> Reply:
    """`lines` between the heading that names the container as it was asked for and the line on HELP itself."""
    heading = b"%b <subcommand> [<arg> [value] [opt] ...]. Subcommands are:" % c_string(args[0]).upper()
    return [Status(heading), *(Status(line.encode()) for line in (*lines, "HELP", "    Prints this help."))]


def helps(container: str, *lines: str, summary: str = _SUMMARY, flags: str = "loading stale", **more: Any) -> None:
    """Declare `<container> HELP`, which answers these lines."""

    @command(f"{container}|help", arity=2, flags=flags, summary=summary, complexity="O(1)", **more)
    def help_(session: CommandSession, args: list[bytes]) -> Reply:
        return help_reply(args, *lines)
