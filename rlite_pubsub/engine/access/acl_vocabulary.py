"""The words of ACL rules: every command and category that a rule may name, as bits of one number.

Promises:
 - A rule may name whatever redis-server 7.0.15 has, whether this server has it or not: files of users written there
   work here. A rule for a command that is not here has no effect.
 - The bits of a user with all rights, commands of later versions included, are all set: -1.
 - A container's rule is a rule for its subcommands, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from rlite_pubsub.engine.access.categories import CATEGORIES, categories_of
from rlite_pubsub.engine.table import TABLE, Command

EVERYTHING = -1
NOTHING = 0

_ELSEWHERE = {
    "admin slow dangerous": "failover",
    "keyspace write slow dangerous": "migrate restore-asking",
    "slow scripting": "eval eval_ro evalsha evalsha_ro fcall fcall_ro function|dump script|debug script|load",
    "write slow scripting": "function|load function|restore",
}
"""Categories -> the commands of redis-server 7.0.15 that are not here."""
_REFERENCE = (7, 0, 15)
"""What Redis has had since a later version is not counted either when a user is put into words."""


class Word(NamedTuple):
    """A command that rules may name."""

    name: bytes
    bit: int
    with_subcommands: int
    """Its bit, and those of its subcommands."""


class Vocabulary:
    """All commands and categories."""

    def __init__(self) -> None:
        """Takes in all commands declared so far."""
        self.words: dict[bytes, Word] = {}
        self.categories: dict[bytes, int] = {}
        """Category -> all bits that a rule of it is about: its commands, and the subcommands of its containers."""
        self.counted: dict[bytes, int] = {}
        """Category -> the commands in it that redis-server 7.0.15 has, which it counts to put a user into words."""
        for name, _, _ in _commands():
            bit = 1 << len(self.words)
            self.words[name] = Word(name, bit, bit)
            parent_name, separator, _ = name.partition(b"|")
            if separator:
                parent = self.words[parent_name]
                self.words[parent_name] = parent._replace(with_subcommands=parent.with_subcommands | bit)
        for category in CATEGORIES:
            members = [(self.words[name], is_ours) for name, within, is_ours in _commands() if category in within]
            key = category.encode()
            self.categories[key] = _union(word.with_subcommands for word, _ in members)
            self.counted[key] = _union(word.bit for word, is_ours in members if not is_ours)

    def find(self, name: bytes) -> Word | None:
        """Return the command of this name in any case, or None; `client|kill` is a subcommand."""
        return self.words.get(name.lower())


def _union(bits: Iterator[int]) -> int:
    found = 0
    for bit in bits:
        found |= bit
    return found


def _commands() -> Iterator[tuple[bytes, list[str], bool]]:
    """Yield every command, containers before their subcommands: its name, its categories, and whether 7.0.15 lacks
    it."""
    here: list[Command] = []
    for top in TABLE.commands.values():
        here += (top, *top.subcommands.values())
    for command in here:
        is_later = tuple(map(int, command.since.split("."))) > _REFERENCE
        yield command.name, categories_of(command), command.ours or is_later
    names_here = {command.name for command in here}
    for categories, names in _ELSEWHERE.items():
        for name in names.split():
            if name.encode() not in names_here:
                yield name.encode(), categories.split(), False


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary of all commands, made when the first rule asks for it: most servers have no rules."""
    TABLE.complete()
    return Vocabulary()
