"""ACL categories: what a command's declaration says and what its flags imply."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.table import Command

CATEGORIES = (
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
)
"""All of them, in the order of ACL CAT and of COMMAND INFO."""

_IMPLIED_BY_FLAGS = {
    "write": ("write",),
    "admin": ("admin", "dangerous"),
    "pubsub": ("pubsub",),
    "blocking": ("blocking",),
}


def categories_of(command: Command) -> list[str]:
    """Return all categories of a command, in the order of `CATEGORIES`; each command is either fast or slow."""
    found = set(command.categories)
    for flag, implied in _IMPLIED_BY_FLAGS.items():
        if flag in command.flags:
            found.update(implied)
    if "readonly" in command.flags and "scripting" not in found:
        found.add("read")
    if command.group == "transactions":
        found.add("transaction")
    if command.ours and command.group == "stream":
        found.add("stream")
    found.add("fast" if "fast" in command.flags else "slow")
    return [category for category in CATEGORIES if category in found]
