"""Lists by place: LSET, LINSERT, LPOS."""

from __future__ import annotations

from rlite_pubsub.commands.collections.lists import list_of, tell_list
from rlite_pubsub.engine.arguments.integers import LONG_MIN, integer
from rlite_pubsub.engine.arguments.lookup import find, for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply

_OUT_OF_RANGE = b"ERR index out of range"
_NO_RANK = (
    b"ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
    b"or use negative to start from the end of the list"
)
_NEGATIVE_COUNT = b"ERR COUNT can't be negative"
_NEGATIVE_LENGTH = b"ERR MAXLEN can't be negative"


@command(
    "lset",
    arity=4,
    flags="write denyoom",
    group="list",
    since="1.0.0",
    categories="list",
    summary="Set the value of an element in a list by its index",
    complexity="O(N) where N is the length of the list. Setting either the first or the last element of the list is "
    "O(1).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("index", "integer"),
        Arg("element"),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def lset(session: CommandSession, args: list[bytes]) -> Reply:
    found = list_of(for_change(session, args[1]))
    if found is None:
        raise CommandError(NO_SUCH_KEY)
    place = integer(args[2])
    if place < 0:
        place += len(found)
    if not 0 <= place < len(found):
        raise CommandError(_OUT_OF_RANGE)
    found.set(place, args[3])
    session.engine.notifications.hold()
    tell_list(session, b"lset", args[1])
    return OK


@command(
    "linsert",
    arity=5,
    flags="write denyoom",
    group="list",
    since="2.2.0",
    categories="list",
    summary="Insert an element before or after another element in a list",
    complexity="O(N) where N is the number of elements to traverse before seeing the value pivot. This means that "
    "inserting somewhere on the left end on the list (head) can be considered O(1) and inserting "
    "somewhere on the right end (tail) is O(N).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "where",
            "oneof",
            arguments=(
                Arg("before", "pure-token", token="BEFORE"),
                Arg("after", "pure-token", token="AFTER"),
            ),
        ),
        Arg("pivot"),
        Arg("element"),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
)
def linsert(session: CommandSession, args: list[bytes]) -> Reply:
    where = args[2].lower()
    if where not in (b"before", b"after"):
        raise CommandError(SYNTAX)
    found = list_of(for_change(session, args[1]))
    if found is None:
        return 0
    place = found.find(args[3])
    if place is None:
        return -1
    found.insert(place + (where == b"after"), args[4])
    tell_list(session, b"linsert", args[1])
    return len(found)


@command(
    "lpos",
    arity=-3,
    flags="readonly",
    group="list",
    since="6.0.6",
    categories="list",
    summary="Return the index of matching elements on a list",
    complexity="O(N) where N is the number of elements in the list, for the average case. When searching for "
    "elements near the head or the tail of the list, or when the MAXLEN option is provided, the command "
    "may run in constant time.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("element"),
        Arg("rank", "integer", token="RANK", optional=True),
        Arg("num-matches", "integer", token="COUNT", optional=True),
        Arg("len", "integer", token="MAXLEN", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def lpos(session: CommandSession, args: list[bytes]) -> Reply:
    rank, count, most = _wanted(args[3:])
    found = list_of(find(session, args[1]))
    places = [] if found is None else _places(found, args[2], rank, 1 if count is None else count, most)
    if count is not None:
        return places
    return places[0] if places else None


def _wanted(rest: list[bytes]) -> tuple[int, int | None, int]:
    """RANK, COUNT (None: it was not said) and MAXLEN. Raises CommandError."""
    rank, count, most = 1, None, 0
    words = iter(rest)
    for word in words:
        option, value = word.lower(), next(words, None)
        if value is None:
            raise CommandError(SYNTAX)
        if option == b"rank":
            rank = integer(value)
            if not rank:
                raise CommandError(_NO_RANK)
        elif option == b"count":
            count = integer(value, 0, refusal=_NEGATIVE_COUNT)
        elif option == b"maxlen":
            most = integer(value, 0, refusal=_NEGATIVE_LENGTH)
        else:
            raise CommandError(SYNTAX)
    return rank, count, most




def _places(found: List, element: bytes, rank: int, count: int, most: int) -> list[int]:
    """Return the places of at most `count` (0: all) equal elements, from the one of this rank on, among the first
    `most` (0: all)."""
    places: list[int] = []
    from_end = rank < 0
    skipped = abs(rank) - 1 if rank != LONG_MIN else 0  # which C negates to itself
    for step, one in enumerate(found.walk(backwards=from_end)):
        if most and step >= most:
            break
        if one == element:
            if skipped:
                skipped -= 1
                continue
            places.append(len(found) - step - 1 if from_end else step)
            if len(places) == count:
                break
    return places
