"""The common layout of large sets, hashes and their kin: a record for each member under the digest of its name.

    key    database byte, number u64, digest (16 bytes)

The order of digests is the order of walks: the cursor of SSCAN, HSCAN, ZSCAN and SCAN is a place among digests, so what
stays is seen whatever else changes, here or in another process. A cursor is the first bits of a digest, behind a 1 that
says how many bits they are; a step of a scan begins at the first digest that begins with them or comes after. It ends
where few bits tell the last digest that it has seen from the next one. So cursors are about as large as what is
scanned, as Redis's are, and clients may hold them as doubles or signed numbers.

A random member is found without counting what is before it: digests are spread evenly, so the space of digests is cut
into stretches of 8 to 16 members on average. A stretch is drawn, and accepted with a probability of its members to
`most`; else another one is drawn. So each member has the same chance, as long as no stretch has more than `most`
members, which does not happen by chance once in a billion draws; a member of a stretch that somebody has overfilled on
purpose is drawn more rarely. It takes three or four draws, whatever the number of members.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import RecordDamaged
from rlite_pubsub.storage.keys import key_bytes

DIGEST_BYTES: Final = key_bytes.DIGEST_BYTES
_digest: Final = key_bytes.digest
_PLACE_OF_SCAN_BYTES: Final = 8
_MOST_CURSOR_BITS: Final = 51
"""Behind the 1 that a cursor begins with: it stays below 2**52, which a double holds exactly."""
_SPARE_BITS: Final = 3
"""How many more bits a cursor may have than the number of what is scanned: 8 to 16 places for each."""
_MOST_BESIDE: Final = 100
"""How much of what shares so many bits a step sees beyond what was asked for, before a cursor may have more of them."""
_PLACE_BYTES: Final = 4
"""The bytes of a digest that say which stretch it is in."""
_AVERAGE: Final = 16
DRAW_STEPS: Final = 50
"""How many steps of a walk take as long as a draw: many of few members are picked in a walk."""
MOST_DRAWS: Final = 1000
"""How many draws for one member fail only if there are fewer members than counted."""


_LAST: Final[list[tuple[bytes, bytes]]] = [(b"", _digest(b""))]
"""The last member and its digest: a change of a member looks for it first."""


def digest(member: bytes) -> bytes:
    """Return the digest under which a member stands."""
    last = _LAST[0]
    if last[0] is member:
        return last[1]
    made = _digest(member)
    _LAST[0] = (member, made)
    return made


def walk(txn: Txn, prefix: bytes) -> Iterator[bytes]:
    """Yield the value of every member. Change nothing meanwhile."""
    for _, value in databases.items(txn, prefix):
        yield value


def start_of(cursor: int) -> bytes:
    """Return the first bytes of the digest at which a step of a scan begins. Any cursor of 64 bits is a place."""
    if not cursor:
        return b""
    bits = cursor.bit_length() - 1
    place = (cursor - (1 << bits)) << (8 * _PLACE_OF_SCAN_BYTES - bits)
    return place.to_bytes(_PLACE_OF_SCAN_BYTES, "big")


def cursor_between(last: bytes, following: bytes, count: int, beside: int) -> int:
    """Return a cursor at which a scan goes on with `following`, and not with `last`, the digest before it; 0 if such a
    cursor would be too large for this many members, and the step should see more of them. `beside`: how many it has
    seen for that reason."""
    one = int.from_bytes(last[:_PLACE_OF_SCAN_BYTES], "big")
    other = int.from_bytes(following[:_PLACE_OF_SCAN_BYTES], "big")
    if one == other:
        return 0
    bits = 8 * _PLACE_OF_SCAN_BYTES + 1 - (one ^ other).bit_length()
    most = _MOST_CURSOR_BITS
    if beside < _MOST_BESIDE:
        most = min(most, count.bit_length() + _SPARE_BITS)
    return 1 << bits | other >> (8 * _PLACE_OF_SCAN_BYTES - bits) if bits <= most else 0


def page(txn: Txn, prefix: bytes, cursor: int, wanted: int, count: int) -> tuple[int, list[bytes]]:
    """Do a step of a scan over `count` members: return the next cursor, 0 at the end, and the values of about `wanted`
    members."""
    found: list[bytes] = []
    last = b""
    at = len(prefix)
    for key, value in databases.items_from(txn, prefix, prefix + start_of(cursor)):
        if len(found) >= wanted:
            following = cursor_between(last[at:], key[at:], count, len(found) - wanted)
            if following:
                return following, found
        last = key
        found.append(value)
    return 0, found


def any_of(txn: Txn, prefix: bytes, count: int) -> bytes:
    """Return the value of a random one of the `count` members, each with the same chance. Raises RecordDamaged if there
    are fewer."""
    bits = stretch_bits(count)
    most = most_in_stretch(count, 1 << bits)
    for _ in range(MOST_DRAWS):
        found = stretch(txn, prefix, random.randrange(1 << bits), bits)
        if found and (not bits or random.randrange(most) < len(found)):
            return random.choice(found)[1]
    raise fewer(count)


def stretch_bits(count: int) -> int:
    """Return how many bits a stretch's number has for this many members."""
    return min((count // _AVERAGE).bit_length(), 8 * _PLACE_BYTES)


def most_in_stretch(count: int, stretches: int) -> int:
    """Return a bound that no stretch exceeds, if `count` members are spread over this many."""
    average = count / stretches
    return int(average + 6 * average**0.5 + 6)  # six deviations above the average, and a little


def stretch_of(key: bytes, at: int, bits: int) -> int:
    """Return the number of the stretch of the digest that stands at `at` in a key."""
    place = key[at] << 24 | key[at + 1] << 16 | key[at + 2] << 8 | key[at + 3]
    return place >> (8 * _PLACE_BYTES - bits)


def stretch(txn: Txn, prefix: bytes, place: int, bits: int) -> list[tuple[bytes, bytes]]:
    """Return the records of one stretch: keys and values."""
    shift = 8 * _PLACE_BYTES - bits
    cursor = txn.cursor()
    if not cursor.set_range(prefix + (place << shift).to_bytes(_PLACE_BYTES, "big") if bits else prefix):
        return []
    end = (place + 1) << shift
    bound = databases.after(prefix) if end >> 8 * _PLACE_BYTES else prefix + end.to_bytes(_PLACE_BYTES, "big")
    found = []
    for key in cursor.iternext(values=False):
        if key >= bound:
            break
        found.append((key, cursor.value()))
    return found


def some_of(txn: Txn, prefix: bytes, count: int, wanted: int) -> list[bytes]:
    """Return the values of this many different ones of the `count` members, in no order. Raises RecordDamaged if there
    are fewer."""
    if wanted >= count:
        return list(walk(txn, prefix))
    if wanted * DRAW_STEPS > count:
        return _picked(txn, prefix, count, sorted(random.sample(range(count), wanted)))
    found: set[bytes] = set()
    for _ in range(4 * wanted + MOST_DRAWS):  # nearly every draw finds a new one
        if len(found) == wanted:
            return list(found)
        found.add(any_of(txn, prefix, count))
    raise fewer(count)


def many_of(txn: Txn, prefix: bytes, count: int, wanted: int) -> list[bytes]:
    """Return this many values, each of a random one of the `count` members with the same chance. Raises RecordDamaged
    if there are fewer members."""
    if wanted * DRAW_STEPS <= count:
        return [any_of(txn, prefix, count) for _ in range(wanted)]
    found = _picked(txn, prefix, count, sorted(random.choices(range(count), k=wanted)))
    random.shuffle(found)
    return found


def _picked(txn: Txn, prefix: bytes, count: int, places: list[int]) -> list[bytes]:
    """Return the values of the members at these places of a walk."""
    found: list[bytes] = []
    values = walk(txn, prefix)
    value: bytes | None = None
    at = -1
    for place in places:
        while at < place:
            value = next(values, None)
            at += 1
        if value is None:
            raise fewer(count)
        found.append(value)
    return found


def fewer(count: int) -> RecordDamaged:
    """Return the error for fewer members than are counted."""
    return RecordDamaged(f"a key is said to have {count} members, and has fewer")
