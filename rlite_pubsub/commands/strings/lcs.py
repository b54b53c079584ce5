"""The longest common subsequence of two strings: LCS."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace import common_subsequence
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Map, Reply

_NOT_STRINGS = b"ERR The specified keys must contain string values"
_BOTH = b"ERR If you want both the length and indexes, please just use IDX."
_TOO_LARGE = b"ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
_CELL_BYTES = 4
"""Of Redis's table, whose size is limited."""


@command(
    "lcs",
    arity=-3,
    flags="readonly",
    group="string",
    since="7.0.0",
    categories="string",
    summary="Find longest common substring",
    complexity="O(N*M) where N and M are the lengths of s1 and s2, respectively",
    arguments=(
        Arg("key1", "key", key_spec=0),
        Arg("key2", "key", key_spec=0),
        Arg("len", "pure-token", token="LEN", optional=True),
        Arg("idx", "pure-token", token="IDX", optional=True),
        Arg("len", "integer", token="MINMATCHLEN", optional=True),
        Arg("withmatchlen", "pure-token", token="WITHMATCHLEN", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 1, 1, 0)),),
)
def lcs(session: CommandSession, args: list[bytes]) -> Reply:
    records = [find(session, key) for key in args[1:3]]
    if any(record is not None and not isinstance(record, Text) for record in records):
        raise CommandError(_NOT_STRINGS)
    one, other = (record.value if isinstance(record, Text) else b"" for record in records)
    words, least = _options(args[3:])
    if {b"len", b"idx"} <= words:
        raise CommandError(_BOTH)
    if (len(one) + 1) * (len(other) + 1) * _CELL_BYTES > session.engine.settings["proto-max-bulk-len"]:
        raise CommandError(_TOO_LARGE)
    if b"len" in words:
        return common_subsequence.length(one, other)
    found, stretches = common_subsequence.find(one, other)
    if b"idx" not in words:
        return found
    matches: list[Reply] = []
    for stretch in stretches:
        if stretch.length >= least:
            match: list[Reply] = [[stretch.first, stretch.last], [stretch.other_first, stretch.other_last]]
            matches.append([*match, stretch.length] if b"withmatchlen" in words else match)
    return Map([(b"matches", matches), (b"len", len(found))])


def _options(rest: list[bytes]) -> tuple[set[bytes], int]:
    """Return the words that were said, and MINMATCHLEN. Raises CommandError."""
    said: set[bytes] = set()
    least = 0
    words = iter(rest)
    for word in words:
        option = word.lower()
        if option in (b"idx", b"len", b"withmatchlen"):
            said.add(option)
            continue
        value = next(words, None)
        if option != b"minmatchlen" or value is None:
            raise CommandError(SYNTAX)
        least = integer(value)
    return said, least
