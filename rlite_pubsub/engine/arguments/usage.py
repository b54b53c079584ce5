"""What the HELP of a family of commands of ours says: each one's grammar and summary, from its declaration."""

from __future__ import annotations

from collections.abc import Collection

from rlite_pubsub.engine.table import TABLE, Arg
from rlite_pubsub.protocol.replies import Status


def usage(family: bytes, but: Collection[bytes] = ()) -> list[Status]:
    """Of all commands whose names begin so, but for some."""
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
