"""Dumped lists and sets.

    list     1: a count, strings            10: a string that is a ziplist
            14: a count, strings that are ziplists
            18: a count, and each time a kind: 1, a string that is one element, or 2, a string that is a listpack
    set      2: a count, strings            20: a string that is a listpack, of Redis 7.2
            11: a string that is an intset:
                                                bytes of an integer u32, count u32, integers in order, little-endian

A dump of ours is a list of kind 18, or a set of kind 2 or 11. An empty one is malformed, and so is a set with a member
twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from struct import Struct

from rlite_pubsub.protocol.rdb import envelope, listpack, ziplist
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

LIST, SET, LIST_ZIPLIST, INTSET, LIST_ZIPLISTS, LIST_NODES, SET_LISTPACK = 1, 2, 10, 11, 14, 18, 20
LISTS = frozenset((LIST, LIST_ZIPLIST, LIST_ZIPLISTS, LIST_NODES))
SETS = frozenset((SET, INTSET, SET_LISTPACK))
_ONE_ELEMENT, _LISTPACK = 1, 2
_NODE_BYTES = 8192
_INTSET_HEAD = Struct("<II")
_INTSET_SIZES = (2, 4, 8)


# -- writing


def pack_list(elements: Iterable[bytes]) -> bytes:
    """Return the type of a list and the list."""
    nodes = [envelope.length(_LISTPACK) + envelope.string(node) for node in _nodes(elements)]
    return bytes((LIST_NODES,)) + envelope.length(len(nodes)) + b"".join(nodes)


def _nodes(elements: Iterable[bytes]) -> Iterator[bytes]:
    node: list[bytes] = []
    size = 0
    for element in elements:
        packed = listpack.element(element)
        if node and size + len(packed) > _NODE_BYTES:
            yield listpack.assemble(node)
            node, size = [], 0
        node.append(packed)
        size += len(packed)
    if node:
        yield listpack.assemble(node)


def pack_set(members: Sequence[bytes]) -> bytes:
    """Return the type of a set and the set."""
    return bytes((SET,)) + envelope.length(len(members)) + b"".join(map(envelope.string, members))


def pack_intset(members: Sequence[bytes]) -> bytes:
    """Return the type of a set of integers and the set; they are in order."""
    numbers = list(map(int, members))
    largest = max(-numbers[0] - 1, numbers[-1])
    size = next(size for size in _INTSET_SIZES if largest < 1 << 8 * size - 1)
    packed = _INTSET_HEAD.pack(size, len(numbers))
    packed += b"".join([number.to_bytes(size, "little", signed=True) for number in numbers])
    return bytes((INTSET,)) + envelope.string(packed)


# -- reading


def read_list(kind: int, reader: PayloadReader) -> list[bytes]:
    """Return the elements, in order. Raises Malformed."""
    elements = list(reader.each(_list_elements(kind, reader)))
    if not elements:
        raise Malformed("a list without elements")
    return elements


def _list_elements(kind: int, reader: PayloadReader) -> Iterator[bytes]:
    if kind == LIST_ZIPLIST:
        yield from ziplist.elements(reader.string())
        return
    for _ in range(reader.length()):
        if kind == LIST:
            yield reader.string()
        elif kind == LIST_ZIPLISTS:
            yield from ziplist.elements(reader.string())
        else:
            yield from _node_elements(reader)


def _node_elements(reader: PayloadReader) -> Iterator[bytes]:
    container, content = reader.length(), reader.string()
    if container == _LISTPACK:
        yield from listpack.elements(content)
    elif container == _ONE_ELEMENT and content:
        yield content
    else:
        raise Malformed("a node of a list of an unknown kind")


def read_set(kind: int, reader: PayloadReader) -> list[bytes]:
    """Return the members. Raises Malformed."""
    members = list(reader.each(_members(kind, reader)))
    if not members or len(set(members)) != len(members):
        raise Malformed("a set without members, or with one twice")
    return members


def _members(kind: int, reader: PayloadReader) -> Iterator[bytes]:
    if kind == INTSET:
        return _intset(reader)
    if kind == SET_LISTPACK:
        return listpack.elements(reader.string())
    return (reader.string() for _ in range(reader.length()))


def _intset(reader: PayloadReader) -> Iterator[bytes]:
    packed = reader.string()
    if len(packed) < _INTSET_HEAD.size:
        raise Malformed("an intset without its head")
    size, count = _INTSET_HEAD.unpack_from(packed)
    if size not in _INTSET_SIZES or len(packed) != _INTSET_HEAD.size + size * count:
        raise Malformed("an intset of another length")
    reader.spend(count * envelope.ELEMENT_BYTES)
    places = range(_INTSET_HEAD.size, len(packed), size)
    numbers = [int.from_bytes(packed[at : at + size], "little", signed=True) for at in places]
    if any(one >= other for one, other in pairwise(numbers)):
        raise Malformed("an intset out of order")
    return (b"%d" % number for number in numbers)
