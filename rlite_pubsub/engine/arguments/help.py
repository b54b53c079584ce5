"""The reply to `<container> HELP`: each subcommand's grammar and, indented under it, what it does. For our own commands
it is made from their declarations."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from rlite_pubsub.engine.table import TABLE, Arg, command
from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.protocol.replies import Reply, Status

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

_SUMMARY = "Show helpful text about the different subcommands"


def help_reply(args: list[bytes], *lines: str) -> Reply:
    """Return `lines` between the heading, which names the container as the client did, and the line on HELP itself."""
    heading = b"%b <subcommand> [<arg> [value] [opt] ...]. Subcommands are:" % c_string(args[0]).upper()
    return [Status(heading), *(Status(line.encode()) for line in (*lines, "HELP", "    Prints this help."))]


def helps(container: str, *lines: str, summary: str = _SUMMARY, flags: str = "loading stale", **more: Any) -> None:
    """Declare `<container> HELP`, which answers these lines."""

    @command(f"{container}|help", arity=2, flags=flags, summary=summary, complexity="O(1)", **more)
    def help_(session: CommandSession, args: list[bytes]) -> Reply:
        return help_reply(args, *lines)


def usage(family: bytes, but: Collection[bytes] = ()) -> list[Status]:
    """Return the grammar and the summary of each command whose name begins with `family`, except those in `but`."""
    lines = []
    for name, one in sorted(TABLE.commands.items()):
        if name.startswith(family) and name not in but:
            words = [name.decode().upper(), *map(_shown, one.arguments)]
            lines += [" ".join(words), f"    {one.summary}."]
    return [Status(line.encode()) for line in lines]


def _shown(arg: Arg) -> str:
    if arg.type == "oneof":
        words = "|".join(map(_shown, arg.arguments))
    elif arg.type == "block":
        words = " ".join(map(_shown, arg.arguments))
    elif arg.type == "pure-token":
        return arg.token or arg.name
    else:
        words = f"<{arg.name}>"
    if arg.token:
        words = f"{arg.token} {words}"
    if arg.multiple:
        words = f"{words} [{words} ...]"
    return f"[{words}]" if arg.optional else words
