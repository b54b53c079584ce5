"""SORT: what a list, a set or a sorted set holds, in order, by itself or by what other keys say of it."""

from __future__ import annotations

from typing import NamedTuple

from rlite_pubsub.commands.collections.lists import tell_list
from rlite_pubsub.engine.access.permission import reads_all_keys
from rlite_pubsub.engine.arguments.floats import sortable
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find, for_change
from rlite_pubsub.engine.arguments.sort_patterns import Pattern
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.restrictions import check_unsharded
from rlite_pubsub.engine.table import TABLE, Arg, KeySpec, command
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import SYNTAX, WRONG_TYPE, CommandError, c_string
from rlite_pubsub.protocol.replies import Reply

_DENIED = b"ERR %b option of SORT denied due to insufficient ACL permissions."
_NOT_NUMBERS = b"ERR One or more scores can't be converted into double"

Source = List | Set | SortedSet


class _Ordering(NamedTuple):
    """What a command asks for."""

    by: Pattern | None
    get: list[Pattern]
    is_unsorted: bool
    """A BY has named what no element can change."""
    is_alphabetic: bool
    backwards: bool
    first: int
    most: int
    """Negative: all."""
    target: bytes | None

    def bounds(self, size: int) -> tuple[int, int]:
        """Return the first of this many elements, and the place after the last."""
        start = min(max(self.first, 0), size)
        return start, size if self.most < 0 else min(start + self.most, size)


def _read(session: CommandSession, args: list[bytes], *, may_store: bool) -> _Ordering:
    """Return the options behind the key. Raises CommandError."""
    by: Pattern | None = None
    get: list[Pattern] = []
    target: bytes | None = None
    is_unsorted = is_alphabetic = backwards = False
    first, most = 0, -1
    at = 2
    while at < len(args):
        option, left = args[at].lower(), len(args) - at - 1
        if option in (b"asc", b"desc"):
            backwards = option == b"desc"
        elif option == b"alpha":
            is_alphabetic = True
        elif option == b"limit" and left >= 2:
            first, most = integer(args[at + 1]), integer(args[at + 2])
            at += 2
        elif option == b"store" and may_store and left:
            target = args[at + 1]
            at += 1
        elif option == b"by" and left:
            by = Pattern(args[at + 1])
            if by.is_constant:
                is_unsorted = True
            else:
                check_unsharded(session, b"BY option of SORT", b"denied in Cluster mode.")
                _check(session, args, b"BY")
            at += 1
        elif option == b"get" and left:
            if not get:
                check_unsharded(session, b"GET option of SORT", b"denied in Cluster mode.")
                _check(session, args, b"GET")
            get.append(Pattern(args[at + 1]))
            at += 1
        else:
            raise CommandError(SYNTAX)
        at += 1
    return _Ordering(by, get, is_unsorted, is_alphabetic, backwards, first, most, target)


def _check(session: CommandSession, args: list[bytes], option: bytes) -> None:
    """The keys that an option leads to are not known before: who may not read all may read none of them. Raises
    CommandError."""
    if session.limits is not None and not reads_all_keys(session.limits, TABLE.resolve(args), args):
        raise CommandError(_DENIED % option)


def _source(session: CommandSession, key: bytes) -> Source | None:
    """Return the key whose elements are sorted. Raises CommandError if it has no elements."""
    found = find(session, key)
    if found is None or isinstance(found, List | Set | SortedSet):
        return found
    raise CommandError(WRONG_TYPE)


def _elements(found: Source) -> list[bytes]:
    if isinstance(found, List):
        return list(found.walk())
    return list(found.members()) if isinstance(found, Set) else [member for member, _ in found.walk()]


def _as_they_stand(found: Source, ordering: _Ordering) -> list[bytes]:
    """Return the elements in their own order; of a list or a sorted set only those asked for are read."""
    size = len(found)
    start, stop = ordering.bounds(size)
    if isinstance(found, SortedSet):
        return [member for member, _ in found.slice(start, stop, backwards=ordering.backwards)]
    if isinstance(found, Set):
        return list(found.members())[start:stop]
    return found.slice(size - stop, size - start)[::-1] if ordering.backwards else found.slice(start, stop)


def _sorted(session: CommandSession, elements: list[bytes], ordering: _Ordering) -> list[bytes]:
    """Return the sorted elements that are asked for. Raises CommandError if they must be numbers and are not."""
    by = ordering.by
    values = [by.value(session, element) for element in elements] if by is not None else elements
    start, stop = ordering.bounds(len(elements))
    if not ordering.is_alphabetic:
        numbers = [0.0 if value is None else sortable(value) for value in values]
        if None in numbers:
            raise CommandError(_NOT_NUMBERS)
        found = sorted(zip(numbers, elements, strict=True), reverse=ordering.backwards)
        return [element for _, element in found[start:stop]]
    # what is stored is in the order of all its bytes, what is answered in that of C's strings
    words = [value if value is None or ordering.target is not None else c_string(value) for value in values]
    order = sorted(
        range(len(elements)), key=lambda at: (words[at] is not None, words[at] or b""), reverse=ordering.backwards
    )
    return [elements[at] for at in order[start:stop]]


def _sort(session: CommandSession, args: list[bytes], ordering: _Ordering) -> Reply:
    if ordering.target is not None:
        session.engine.keyspace.writing()  # what is read is the latest
    found = _source(session, args[1])
    if ordering.is_unsorted and isinstance(found, Set) and (ordering.target is not None or session.in_script):
        # what is stored does not depend on how a set happens to be laid out
        ordering = ordering._replace(is_unsorted=False, is_alphabetic=True, by=None)
    elements: list[bytes] = []
    if found is not None:
        elements = (
            _as_they_stand(found, ordering) if ordering.is_unsorted else _sorted(session, _elements(found), ordering)
        )
    answer: list[bytes | None] = list(elements)
    if ordering.get:
        answer = [pattern.value(session, element) for element in elements for pattern in ordering.get]
    return answer if ordering.target is None else _store(session, ordering.target, [word or b"" for word in answer])


def _store(session: CommandSession, target: bytes, elements: list[bytes]) -> Reply:
    """Store the elements, replacing the key of whatever type, or remove it if there are none; answer how many there
    are."""
    keyspace = session.engine.keyspace
    before = for_change(session, target)
    if before is not None:
        keyspace.remove(before)
    if elements:
        keyspace.create(List, session.db, target, replaces=before is not None).push(elements, left=False)
        tell_list(session, b"sortstore", target)
    elif before is not None:
        session.engine.notifications.tell("g", b"del", session.db, target)
    return len(elements)


_UNKNOWN = ("unknown",)
_SORTED = KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0))
_LED_TO = KeySpec(
    ("RO", "ACCESS"),
    _UNKNOWN,
    _UNKNOWN,
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key "
    "we sort",
)
_TARGET = KeySpec(
    ("OW", "UPDATE"),
    _UNKNOWN,
    _UNKNOWN,
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument "
    "array",
)
_SKIPPED = {b"limit": 2, b"get": 1, b"by": 1}


def _keys_of_sort(args: list[bytes]) -> list[tuple[int, KeySpec]]:
    """Return the places of its keys: of several STOREs the last counts."""
    found = [(1, _SORTED)]
    at = 2
    while at < len(args):
        word = args[at].lower()
        if word == b"store" and at + 1 < len(args):
            found[1:] = [(at + 1, _TARGET)]
        at += 1 + _SKIPPED.get(word, 0)
    return found


def _keys_of_sort_ro(_args: list[bytes]) -> list[tuple[int, KeySpec]]:
    return [(1, _SORTED)]


@command(
    "sort",
    arity=-2,
    flags="write denyoom movablekeys",
    group="generic",
    since="1.0.0",
    categories="set sortedset list dangerous",
    summary="Sort the elements in a list, set or sorted set",
    complexity="O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of "
    "returned elements. When the elements are not sorted, complexity is O(N).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("pattern", "pattern", token="BY", optional=True, key_spec=1),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
        Arg("pattern", "pattern", token="GET", optional=True, multiple=True, multiple_token=True, key_spec=1),
        Arg(
            "order",
            "oneof",
            optional=True,
            arguments=(
                Arg("asc", "pure-token", token="ASC"),
                Arg("desc", "pure-token", token="DESC"),
            ),
        ),
        Arg("sorting", "pure-token", token="ALPHA", optional=True),
        Arg("destination", "key", token="STORE", optional=True, key_spec=2),
    ),
    key_specs=(_SORTED, _LED_TO, _TARGET),
    find_keys=_keys_of_sort,
)
def sort(session: CommandSession, args: list[bytes]) -> Reply:
    return _sort(session, args, _read(session, args, may_store=True))


@command(
    "sort_ro",
    arity=-2,
    flags="readonly movablekeys",
    group="generic",
    since="7.0.0",
    categories="set sortedset list dangerous",
    summary="Sort the elements in a list, set or sorted set. Read-only variant of SORT.",
    complexity="O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of "
    "returned elements. When the elements are not sorted, complexity is O(N).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("pattern", "pattern", token="BY", optional=True, key_spec=1),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
        Arg("pattern", "pattern", token="GET", optional=True, multiple=True, multiple_token=True, key_spec=1),
        Arg(
            "order",
            "oneof",
            optional=True,
            arguments=(
                Arg("asc", "pure-token", token="ASC"),
                Arg("desc", "pure-token", token="DESC"),
            ),
        ),
        Arg("sorting", "pure-token", token="ALPHA", optional=True),
    ),
    key_specs=(_SORTED, _LED_TO),
    find_keys=_keys_of_sort_ro,
)
def sort_ro(session: CommandSession, args: list[bytes]) -> Reply:
    return _sort(session, args, _read(session, args, may_store=False))
