"""Redis's glob: each corner by name, all short patterns against a plain matcher, and both against the real server."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import example, given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S

from rlite_pubsub.protocol import glob
from rlite_pubsub.protocol.glob import Glob

HIGH = bytes(range(0x80, 0x100))

# name of the corner, pattern, names that match, names that do not
CORNERS = [
    ("an empty pattern matches the empty name", b"", [b""], [b"a"]),
    ("a star needs a name", b"*", [b"a", b"\x00", b"**"], [b""]),
    ("many stars are one", b"***", [b"a", b"ab"], [b""]),
    ("literals are whole names", b"news", [b"news"], [b"", b"new", b"newsy", b"anews", b"News"]),
    ("a star at the end may be empty", b"a*", [b"a", b"ab", b"a*"], [b"", b"b", b"ba"]),
    ("stars at the end may be empty", b"a***", [b"a", b"abc"], [b"", b"b"]),
    ("a star at the start may be empty", b"*a", [b"a", b"ba", b"aa"], [b"", b"ab"]),
    ("a star in the middle may be empty", b"a*b", [b"ab", b"aab", b"axxb"], [b"a", b"b", b"ba", b"abx"]),
    ("ends do not overlap", b"ab*ba", [b"abba", b"abxba"], [b"aba", b"ab"]),
    ("what stands between stars is in order", b"*a*b*", [b"ab", b"xaxbx"], [b"ba", b"a", b"b"]),
    (
        "what stands between stars does not overlap",
        b"*ab*ba*",
        [b"abba", b"ab-ba"],
        [b"aba", b"abax", b"xxaba", b"baab"],
    ),
    ("the last place of the end counts", b"*ab", [b"abab", b"aab"], [b"aba"]),
    ("what stands between stars does not reach into the end", b"*ab*b", [b"abb", b"ab.b"], [b"ab", b"aab"]),
    ("a question mark is one byte", b"?", [b"a", b"\xff", b"?"], [b"", b"ab"]),
    ("a question mark after a star is one byte", b"*?", [b"a", b"ab"], [b""]),
    ("question marks count", b"?*??", [b"abc", b"abcd"], [b"ab", b"a", b""]),
    ("newlines are bytes like others", b"?\n*", [b"\n\n", b"a\n\n\n"], [b"\n"]),
    ("NUL is a byte like others", b"a\x00*b\x00", [b"a\x00b\x00", b"a\x00\x00b\x00"], [b"a", b"a\x00b"]),
    ("a class is one byte of it", b"h[ae]llo", [b"hallo", b"hello"], [b"hillo", b"hllo", b"haello"]),
    ("a range", b"[a-c]", [b"a", b"b", b"c"], [b"d", b"-", b"`"]),
    ("a reversed range", b"[c-a]", [b"a", b"b", b"c"], [b"d", b"-"]),
    ("a range of one", b"[b-b]", [b"b"], [b"a", b"c", b"-"]),
    ("a dash first is itself", b"[-a]", [b"-", b"a"], [b"b", b"."]),
    ("a range from the dash", b"[--/]", [b"-", b".", b"/"], [b",", b"0"]),
    ("a dash last makes a range to the bracket, and leaves the class open", b"[a-]", [b"]", b"^", b"a"], [b"-", b"b"]),
    ("a range to the bracket needs another bracket", b"[a-]]", [b"]", b"_", b"a"], [b"-", b"b", b"a]"]),
    ("a range to a backslash does not escape", b"[a-\\]]", [b"a]", b"\\]", b"^]"], [b"a", b"\\", b"b]"]),
    ("a range is not begun by an escaped byte", b"[\\a-c]", [b"a", b"-", b"c"], [b"b", b"\\"]),
    ("two bytes and a dash at the end are no range", b"[a-", [b"a", b"-"], [b"b", b"["]),
    ("high bytes are negative in a range", b"[a-\x80]", [b"a", b"\x00", HIGH[:1], b"\xff", b"A"], [b"b", b"\x7f"]),
    ("high bytes alone are in their order", b"[\x90-\xa0]", [b"\x90", b"\x98", b"\xa0"], [b"\x8f", b"\xa1", b"a"]),
    ("a range through zero is short", b"[\xfe-\x01]", [b"\xfe", b"\xff", b"\x00", b"\x01"], [b"\x02", b"\xfd"]),
    ("a negated class", b"[^a]", [b"b", b"^", b"\xff"], [b"a", b""]),
    ("a negated range", b"[^a-c]x", [b"dx", b"-x"], [b"ax", b"bx", b"cx", b"x"]),
    ("a caret later is itself", b"[a^]", [b"a", b"^"], [b"b"]),
    ("an escaped caret is itself", b"[\\^a]", [b"a", b"^"], [b"b", b"\\"]),
    ("an exclamation mark does not negate", b"[!a]", [b"a", b"!"], [b"b"]),
    ("an empty class matches nothing", b"[]", [], [b"", b"[", b"]", b"[]", b"a"]),
    ("an empty class matches nothing, stars or not", b"*[]*", [], [b"", b"a", b"[]"]),
    ("a bracket first closes the class", b"[]a]", [], [b"a]", b"]", b"a", b"]a]"]),
    ("a negated empty class is any byte", b"[^]", [b"a", b"]", b"^"], [b"", b"ab"]),
    ("a bracket first closes a negated class", b"[^]a]", [b"xa]", b"]a]"], [b"x", b"a"]),
    ("an escaped bracket is itself", b"[\\]]", [b"]"], [b"\\", b"]]", b""]),
    ("an escaped bracket leaves the class open", b"[\\]", [b"]"], [b"\\", b"[\\]"]),
    ("an escaped dash is itself", b"[a\\-c]", [b"a", b"-", b"c"], [b"b", b"\\"]),
    ("an escaped backslash is itself", b"[\\\\]", [b"\\"], [b"]", b"\\\\"]),
    ("a backslash that ends an open class is itself", b"[\\", [b"\\"], [b"[", b"[\\", b""]),
    ("an open class ends with the pattern", b"[ab", [b"a", b"b"], [b"[", b"[ab", b"ab"]),
    ("an open class, negated", b"[^ab", [b"c", b"["], [b"a", b"b", b""]),
    ("an open class of nothing matches nothing", b"[", [], [b"", b"[", b"a"]),
    ("an open negated class of nothing is any byte", b"[^", [b"a", b"^", b"["], [b"", b"[^"]),
    ("an open class after a star", b"*[ab", [b"a", b"xb"], [b"", b"ax"]),
    ("an open class takes stars in", b"[*", [b"*"], [b"", b"a", b"**"]),
    ("stars and question marks are themselves in a class", b"[*?]", [b"*", b"?"], [b"a", b""]),
    ("a class after its bracket goes on", b"[a]]", [b"a]"], [b"a", b"]"]),
    ("a bracket outside a class is itself", b"]", [b"]"], [b"", b"a"]),
    ("an opening bracket in a class is itself", b"[[]", [b"["], [b"]", b"[]"]),
    ("an escaped star is itself", b"a\\*", [b"a*"], [b"a", b"ab", b"a\\*"]),
    ("an escaped question mark is itself", b"\\?", [b"?"], [b"a", b"\\?"]),
    ("an escaped opening bracket is itself", b"\\[a]", [b"[a]"], [b"a", b"\\[a]"]),
    ("an escaped letter is itself", b"\\n", [b"n"], [b"\n", b"\\n"]),
    ("an escaped backslash outside a class", b"\\\\", [b"\\"], [b"\\\\", b""]),
    ("a backslash at the end is itself", b"a\\", [b"a\\"], [b"a", b"a\\\\"]),
    ("a backslash after a star at the end is itself", b"*\\", [b"\\", b"a\\"], [b"a", b""]),
    ("an escaped star at the end is no star", b"*\\*", [b"*", b"a*"], [b"a", b""]),
    ("a thousand stars match", b"*a" * 1000, [b"a" * 1000], [b"a" * 999]),
    ("a thousand stars and one match nothing", b"*a" * 1001, [], [b"a" * 1001]),
    ("a star at the end does not count", b"a*" * 1001, [b"a" * 1001], [b"a" * 1000]),
    ("a thousand stars and one at the end match", b"*a" * 1000 + b"*", [b"a" * 1000], [b"a" * 999]),
    ("stars in a row count as one", b"***a" * 1000, [b"a" * 1000], [b"a" * 999]),
]

NOCASE_CORNERS = [
    ("literals fold", b"News.*", [b"nEWS.x", b"news."], [b"new", b"nexs."]),
    ("an escape outside a class folds", b"\\A", [b"a", b"A"], [b"\\a", b"b"]),
    ("a class folds", b"[Ab]", [b"a", b"A", b"b", b"B"], [b"c"]),
    ("an escape in a class does not fold", b"[\\A]", [b"A"], [b"a"]),
    ("a range folds", b"[B-c]", [b"c", b"C", b"b", b"B"], [b"a", b"d", b"_", b"^"]),
    ("a reversed range folds", b"[C-B]", [b"c", b"C", b"b", b"B"], [b"a", b"d"]),
    ("a range whose ends lose their order is empty", b"[b-C]", [], [b"b", b"c", b"B", b"C", b"_"]),
    ("a range from a letter to a sign may lose its order", b"[Z-_]", [], [b"Z", b"z", b"_", b"["]),
    ("a range from a high byte to a low one is empty", b"[\xfe-b]", [], [b"\xfe", b"\xff", b"\x00", b"a", b"b"]),
    ("a range of high bytes is in order", b"[\x90-\xa0]", [b"\x90", b"\x98"], [b"\x8f", b"\xa1", b"a"]),
    ("a range up to the last byte folds", b"[\xff-b]", [b"\xff", b"a", b"B", b"\x00"], [b"\xfe", b"c"]),
    ("only letters of ASCII fold", b"\xc0[@]", [b"\xc0@"], [b"\xe0@", b"\xc0`"]),
]


@pytest.mark.parametrize(("pattern", "matching", "others"), [c[1:] for c in CORNERS], ids=[c[0] for c in CORNERS])
def test_corner_is_as_in_redis(pattern: bytes, matching: list[bytes], others: list[bytes]) -> None:
    compiled = Glob(pattern)
    assert [name for name in matching if not compiled.matches(name)] == []
    assert [name for name in others if compiled.matches(name)] == []


@pytest.mark.parametrize(
    ("pattern", "matching", "others"), [c[1:] for c in NOCASE_CORNERS], ids=[c[0] for c in NOCASE_CORNERS]
)
def test_corner_without_case_is_as_in_redis(pattern: bytes, matching: list[bytes], others: list[bytes]) -> None:
    compiled = Glob(pattern, nocase=True)
    assert [name for name in matching if not compiled.matches(name)] == []
    assert [name for name in others if compiled.matches(name)] == []


def plainly_matches(pattern: bytes, name: bytes) -> bool:
    """The definition, as slow as it is plain: an element of the pattern is one byte, a star any number of them."""
    return rest_matches(pattern, name) if name else not pattern


def rest_matches(pattern: bytes, name: bytes) -> bool:
    if not pattern:
        return not name
    if pattern[:1] == b"*":
        return any(rest_matches(pattern[1:], name[taken:]) for taken in range(len(name) + 1))
    if not name:
        return False
    if pattern[:1] == b"?":
        return rest_matches(pattern[1:], name[1:])
    if pattern[:1] == b"[":
        accepted, rest = class_accepts(pattern[1:], name[:1])
        return accepted and rest_matches(rest, name[1:])
    if pattern[:1] == b"\\" and len(pattern) > 1:
        pattern = pattern[1:]
    return pattern[:1] == name[:1] and rest_matches(pattern[1:], name[1:])


def class_accepts(inside: bytes, byte: bytes) -> tuple[bool, bytes]:
    if inside[:1] == b"^":
        accepted, rest = members_accept(inside[1:], byte)
        return not accepted, rest
    return members_accept(inside, byte)


def members_accept(inside: bytes, byte: bytes) -> tuple[bool, bytes]:
    if inside[:1] in (b"", b"]"):
        return False, inside[1:]
    if inside[:1] == b"\\" and len(inside) > 1:
        here, rest = inside[1:2] == byte, inside[2:]
    elif inside[1:2] == b"-" and len(inside) > 2:
        one, other, middle = (signed(text) for text in (inside[:1], inside[2:3], byte))
        here, rest = min(one, other) <= middle <= max(one, other), inside[3:]
    else:
        here, rest = inside[:1] == byte, inside[1:]
    later, rest = members_accept(rest, byte)
    return here or later, rest


def signed(byte: bytes) -> int:
    return int.from_bytes(byte, "big", signed=True)


def bytes_of(alphabet: bytes, max_size: int) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(list(alphabet)), max_size=max_size).map(bytes)


PATTERNS = bytes_of(b"ab*?[]^-\\", 12) | bytes_of(b"ab*?", 14) | bytes_of(b"a\x00\x7f\x80\xff[]^-*", 10)
NAMES = bytes_of(b"ab", 12) | bytes_of(b"ab]^-\\[*", 8) | bytes_of(b"a\x00\x7f\x80\xff", 6)


# Every name of two letters up to this length: a wrong place is seen only in a name that has the right ones beside it.
ALL_NAMES = [bytes(letters) for length in range(8) for letters in itertools.product(b"ab", repeat=length)]


@settings(max_examples=1500, deadline=None)
@given(PATTERNS, st.lists(NAMES, min_size=1, max_size=8))
@example(b"*", [b""])
def test_any_short_pattern_matches_what_its_definition_says(pattern: bytes, names: list[bytes]) -> None:
    compiled = Glob(pattern)
    for name in names:
        assert compiled.matches(name) == plainly_matches(pattern, name), (pattern, name)


@pytest.mark.parametrize(("anchor_tries", "first_window"), [(8, 64), (0, 1), (0, 64), (1, 2)])
@settings(max_examples=250, deadline=None)
@given(pieces=st.lists(st.sampled_from([b"*", b"*", b"a", b"b", b"ab", b"?", b"[ab]", b"[^b]"]), max_size=8))
@example(pieces=[b"*", b"[^b]", b"b", b"*"])
@example(pieces=[b"*", b"[^b]", b"a", b"*", b"[^a]"])
def test_segments_are_found_at_their_leftmost_place_however_they_are_sought(
    anchor_tries: int, first_window: int, pieces: list[bytes]
) -> None:
    pattern = b"".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glob, "_ANCHOR_TRIES", anchor_tries)
        patch.setattr(glob, "_FIRST_WINDOW", first_window)
        patch.setattr(glob, "_POSITION_SETS_KEPT", 1)
        compiled = Glob(pattern)
        for name in ALL_NAMES:
            assert compiled.matches(name) == plainly_matches(pattern, name), (pattern, name)


@settings(max_examples=500, deadline=None)
@given(PATTERNS, NAMES)
def test_what_a_pattern_promises_of_a_name_is_true_of_every_name_that_matches(pattern: bytes, name: bytes) -> None:
    compiled = Glob(pattern)
    if compiled.matches(name):
        assert not compiled.impossible
        assert compiled.shortest <= len(name) <= compiled.longest
        assert name.startswith(compiled.literal_prefix) and name.endswith(compiled.literal_suffix)
        assert all(literal in name for literal in compiled.literals())
        assert not compiled.exact or name == compiled.literal_prefix


def test_literals_of_a_pattern_are_its_ends_and_its_longest() -> None:
    compiled = Glob(b"news.*.[1]23\\*.*?.uk")
    assert (compiled.literal_prefix, compiled.literal_suffix) == (b"news.", b".uk")
    assert list(compiled.literals()) == [b"news.", b".123*.", b".uk"]
    assert Glob(b"[n]ews").exact and Glob(b"").exact
    assert not Glob(b"news*").exact and not Glob(b"n?ws").exact and not Glob(b"[]").exact
    assert Glob(b"a[]").impossible and not Glob(b"a[^]").impossible


# Each of these would keep a matcher that tries every split of the name busy for ages; pytest's timeout is the bound.
@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (b"a*" * 1000 + b"b", b"a" * 100_000),
        (b"a*" * 1000 + b"b*", b"a" * 100_000),
        (b"*" + b"a?" * 1000 + b"b*", b"a" * 100_000),
        (b"*" + b"[ab]?" * 1000 + b"[cd]*", b"ab" * 50_000),
        (b"*[ab]a?" * 1000 + b"*[cd]*", b"a" * 100_000),
        (b"*?" * 50_000 + b"*b", b"a" * 100_000),
        (b"*" + b"a" * 5000 + b"b" + b"a" * 5000 + b"*", b"a" * 100_000),
        (b"?" * 200_000 + b"*", b"a" * 199_999),
        (b"[" * 1_000_000, b"[" * 3),
    ],
    ids=lambda text: repr(text[:12]) if isinstance(text, bytes) else None,
)
def test_hostile_pattern_does_not_hang(pattern: bytes, name: bytes) -> None:
    assert not Glob(pattern).matches(name)


def test_pattern_of_many_megabytes_is_compiled() -> None:
    assert Glob(b"x" * 10_000_000).matches(b"x" * 10_000_000)
    assert not Glob(b"x*" * 500_000).matches(b"x" * 500_000)
    assert not Glob(b"x?" * 500_000).matches(b"x" * 999_999)


@pytest.fixture
def real_redis(reference: Any) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=str(reference.path)) as client:
        yield client


def test_random_patterns_match_what_redis_matches(real_redis: redis.Redis) -> None:
    chance = random.Random(20)
    names = {b"", *(bytes((byte,)) for byte in range(256))}
    while len(names) < 700:
        names.add(bytes(chance.choices(b"ab]^-\\[*?\x00\xff", k=chance.randrange(2, 5))))
        names.add(bytes(chance.choices(b"ab", k=chance.randrange(2, 9))))
    with real_redis.pubsub() as subscriber:  # type: ignore[no-untyped-call]
        subscriber.subscribe(*names)
        for _ in names:
            assert subscriber.get_message(timeout=PATIENCE_S) is not None
        for _ in range(3000):
            alphabet = chance.choice((b"ab*?[]^-\\", b"ab*?", b"a\x00\x7f\x80\xff[]^-*\\"))
            pattern = bytes(chance.choices(alphabet, k=chance.randrange(13)))
            compiled = Glob(pattern)
            assert set(real_redis.pubsub_channels(pattern)) == {n for n in names if compiled.matches(n)}, pattern


@pytest.mark.parametrize("pattern", [corner[1] for corner in CORNERS if len(corner[1]) > 500], ids=len)
def test_patterns_of_many_stars_match_what_redis_matches(real_redis: redis.Redis, pattern: bytes) -> None:
    names = [b"a" * length for length in (999, 1000, 1001)]
    with real_redis.pubsub() as subscriber:  # type: ignore[no-untyped-call]
        subscriber.subscribe(*names)
        for _ in names:
            assert subscriber.get_message(timeout=PATIENCE_S) is not None
        matching = {name for name in names if Glob(pattern).matches(name)}
        assert set(real_redis.pubsub_channels(pattern)) == matching


def test_random_patterns_without_case_match_what_redis_matches(real_redis: redis.Redis) -> None:
    chance = random.Random(21)
    names = directives(real_redis, b"*")
    compared = 0
    while compared < 2000:
        name = chance.choice(sorted(names))
        at = chance.randrange(len(name))
        pattern = b"*" + name[at : at + 3].upper() + bytes(chance.choices(b"aAeEsS*?[]^-\\_Z", k=chance.randrange(9)))
        if not pattern[1:].strip(b"*"):
            continue
        compiled = Glob(pattern, nocase=True)
        assert directives(real_redis, pattern) == {n for n in names if compiled.matches(n)}, pattern
        compared += 1


def directives(client: redis.Redis, pattern: bytes) -> set[bytes]:
    return {str(name).encode() for name in client.config_get(pattern)}
