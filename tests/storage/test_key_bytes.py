"""What keys and records are made of, and how keys sort: in C, as a compiled package has it, and without."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right, insort
from hashlib import blake2b
from pathlib import Path
from struct import error, pack
from types import SimpleNamespace
from typing import Any

import pytest
from c_module import Rude, collecting_garbage, compiled

from rlite_pubsub.storage.keys import fields, key_bytes, key_records, ranks, scores, words

SCORES = [-math.inf, -1e308, -1.5, -1.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.5, 1e308, math.inf]


@pytest.fixture(params=["pure", "C"])
def made(request: pytest.FixtureRequest) -> Any:
    if request.param == "C":
        return compiled(Path(key_bytes.__file__).with_name("_key_bytes.c"))
    return SimpleNamespace(
        digest=key_bytes.pure_digest,
        place=key_bytes.pure_place,
        scored=key_bytes.pure_scored,
        left_of=bisect_left,
        right_of=bisect_right,
        put_in=insort,
        take_out=key_bytes.pure_take_out,
        members_of=key_bytes.pure_members_of,
        member_rows=key_bytes.pure_member_rows,
        register=key_bytes.pure_register,
        field=key_bytes.pure_field,
        element=key_bytes.pure_element,
        key_record=key_bytes.pure_key_record,
        posts=key_bytes.pure_posts,
        words=key_bytes.pure_words,
        rows_in_order=key_bytes.pure_rows_in_order,
        bytes_of_rows=key_bytes.pure_bytes_of_rows,
        changes=key_bytes.pure_changes,
    )


def some_bytes(chance: random.Random, count: int) -> list[bytes]:
    """Different ones; some begin with others, and some have bytes beyond 127."""
    beginnings = (b"", b"a", b"\x00", b"\xff" * 9)
    return list({chance.choice(beginnings) + chance.randbytes(chance.randrange(4)) for _ in range(count)})


def test_a_digest_is_blake2b_whatever_the_size(made: Any) -> None:
    chance = random.Random(1)
    for size in (*range(300), 383, 384, 385, 4096, 100_000):
        name = chance.randbytes(size)
        assert made.digest(name) == blake2b(name, digest_size=16).digest()


def test_a_digest_is_the_one_that_stores_have(made: Any) -> None:
    assert made.digest(b"").hex() == "cae66941d9efbd404e4d88758ea67670"
    assert made.digest(b"member").hex() == "3015ef8e5909f45eb64efd159a5cadd0"


def test_an_element_falls_to_the_register_that_redis_server_chooses(made: Any) -> None:
    found = [made.register(element) for element in (b"", b"a", b"hello", b"12345678", b"\xff" * 21)]
    assert found == [380034, 813506, 589825, 677059, 33731]
    chance = random.Random(3)
    for size in (*range(70), 1000):
        element = chance.randbytes(size)
        assert made.register(element) == key_bytes.pure_register(element)


def test_rows_of_members_stand_under_their_digests(made: Any) -> None:
    assert made.member_rows(b"M", []) == {}
    found = [b"", b"a", b"b" * 1000, b"a"]
    assert made.member_rows(b"M12", found) == {b"M12" + made.digest(member): member for member in found}
    for wrong in ((b"M", [b"a", "b"]), ("M", [b"a"]), (b"M",)):
        with pytest.raises(TypeError):
            made.member_rows(*wrong)


def test_places_sort_as_scores_do_and_then_as_members(made: Any) -> None:
    places = [made.place(score, member) for score in SCORES for member in (b"", b"\x00", b"a", b"b")]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert made.place(-0.0, b"a") == made.place(0.0, b"a") == pack(">d", -0.0) + b"a"
    assert made.place(-1.0, b"") == bytes(each ^ 0xFF for each in pack(">d", -1.0))
    chance = random.Random(2)
    for _ in range(500):
        score, other = chance.uniform(-100, 100), chance.choice((chance.uniform(-100, 100), float(chance.randrange(9))))
        assert (made.place(score, b"m") < made.place(other, b"m")) == (score < other)


def test_the_members_of_places_are_those_that_were_put_there(made: Any) -> None:
    members = [b"m" * size for size in (0, 1, 7, 8, 439, 440, 441, 448, 456, 457, 1000, 70_000)]
    places = [ranks.place(score, member) for score in (-1.5, 0.0) for member in members]
    assert made.members_of(places) == [ranks.member_of(place) for place in places] == members * 2
    assert made.members_of([]) == []


def test_the_record_of_a_field_is_what_is_read_back(made: Any) -> None:
    for name in (b"", b"name", b"\x00" * 300):
        for value in (b"", b"value", b"\xff" * 70_000):
            for due_ms in (0, 1, 1_800_000_000_000, 2**64 - 1):
                assert fields.unpack(made.field(name, value, due_ms)) == (name, value, due_ms)
    assert made.field(b"name", b"value", 258).hex() == "0000000000000102000000046e616d6576616c7565"


def test_a_field_has_no_time_that_does_not_fit(made: Any) -> None:
    for due_ms in (-1, 2**64):
        with pytest.raises((OverflowError, error)):
            made.field(b"name", b"value", due_ms)


def test_the_key_of_an_element_sorts_as_its_index_does(made: Any) -> None:
    indexes = [-(2**63), -(2**32) - 1, -(2**32), -257, -1, 0, 1, 255, 2**31, 2**32, 2**63 - 1]
    keys = [made.element(b"L", number, index) for number in (0, 1, 2**64 - 1) for index in indexes]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert made.element(b"L", 258, -1).hex() == "4c00000000000001027fffffffffffffff"
    assert made.element(b"L", 1, 3).hex() == "4c00000000000000018000000000000003"
    for number, index in ((-1, 0), (2**64, 0), (1, 2**63), (1, -(2**63) - 1)):
        with pytest.raises((OverflowError, error)):
            made.element(b"L", number, index)


def test_the_record_of_a_key_is_what_is_read_back(made: Any) -> None:
    for numbers in ((1, 0, 0, 0), (255, 255, 2**64 - 1, 2**64 - 1), (5, 1, 1_800_000_000_000, 77)):
        for name in (b"", b"name", b"\x00" * 70_000):
            for body in (b"", b"body", b"\xff" * 70_000):
                assert key_records.unpack(made.key_record(*numbers, name, body)) == (*numbers, name, body)
    assert made.key_record(1, 2, 3, 258, b"na", b"body").hex() == "01020000000000000003000000000000010200000002" + (
        b"nabody".hex()
    )
    for numbers in ((256, 0, 0, 0), (1, 256, 0, 0), (1, 0, 2**64, 0), (1, 0, 0, -1)):
        with pytest.raises((OverflowError, error)):
            made.key_record(*numbers, b"", b"")


def test_the_record_of_a_member_is_what_is_read_back(made: Any) -> None:
    for score in (0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, 1e-300):
        for member in (b"", b"member", b"\xff" * 500):
            read, of = scores.unpack(made.scored(score, member))
            assert (read, of) == (member, score) and math.copysign(1, of) == math.copysign(1, score)
    assert made.scored(1.5, b"m").hex() == "3ff8000000000000" + b"m".hex()


def test_posts_are_what_is_read_back(made: Any) -> None:
    given = [(members, bound) for members in (0, 1, 258, 2**64 - 1) for bound in (b"", b"bound", b"\xff" * 500)]
    for count in (0, 1, len(given)):
        counts, bounds = [one for one, _ in given[:count]], [one for _, one in given[:count]]
        packed = made.posts(counts, bounds)
        assert [ranks.unpack_post(word) for word in words.unpack(packed, 0)] == given[:count]
        assert packed == words.pack([ranks.pack_post(*post) for post in given[:count]])
    with pytest.raises((OverflowError, error)):
        made.posts([-1], [b""])


def test_words_are_what_is_read_back(made: Any) -> None:
    chance = random.Random(6)
    for count in (0, 1, 2, 3, 20, 300, 70_000):
        strings = [chance.randbytes(chance.choice((0, 1, 7, 300))) for _ in range(count)]
        assert words.unpack(b"head" + made.words(strings), 4) == strings
        assert made.words(tuple(strings)) == made.words(strings)
    assert made.words([b"one", b"", b"three"]).hex() == "00000003000000030000000000000005" + b"onethree".hex()


def test_rows_are_put_in_order_as_python_would(made: Any) -> None:
    chance = random.Random(3)
    for count in (0, 1, 2, 3, 10, 1000):
        rows = {key: chance.choice((None, b"", b"value")) for key in some_bytes(chance, count)}
        before = list(rows.items())
        kept, gone = made.rows_in_order(rows)
        assert kept == sorted((key, value) for key, value in before if value is not None)
        assert gone == sorted(key for key, value in before if value is None)
        assert list(rows.items()) == before


def test_rows_that_garbage_changes_meanwhile_are_refused_by_c() -> None:
    c = compiled(Path(key_bytes.__file__).with_name("_key_bytes.c"))
    said = set()
    for behind in range(1, 40):
        rows = {b"%d" % number: b"value of %d" % number for number in range(100)}
        with collecting_garbage(behind):
            Rude(rows.clear)
            try:
                c.rows_in_order(rows)
            except RuntimeError as error:
                said.add(str(error))
    assert said == {"the rows have changed meanwhile"}


def test_a_place_among_keys_is_left_or_right_of_equal_ones(made: Any) -> None:
    chance = random.Random(4)
    keys = sorted(some_bytes(chance, 500))
    for key in [*keys, *some_bytes(chance, 500)]:
        assert made.left_of(keys, key) == bisect_left(keys, key)
        assert made.right_of(keys, key) == bisect_right(keys, key)
    assert made.left_of([], b"a") == made.right_of([], b"a") == 0
    assert made.left_of([b"a", b"a", b"b"], b"a") == 0
    assert made.right_of([b"a", b"a", b"b"], b"a") == 2


def test_what_is_not_bytes_is_refused_by_c() -> None:
    c = compiled(Path(key_bytes.__file__).with_name("_key_bytes.c"))
    for call in (
        lambda: c.digest("text"),
        lambda: c.place(1, b""),
        lambda: c.place(1.0, "text"),
        lambda: c.place(1.0),
        lambda: c.members_of((b"12345678",)),
        lambda: c.members_of(["12345678"]),
        lambda: c.members_of([b"1234567"]),
        lambda: c.field(b"name", b"value"),
        lambda: c.field("name", b"value", 0),
        lambda: c.field(b"name", "value", 0),
        lambda: c.field(b"name", b"value", 0.0),
        lambda: c.element("L", 1, 1),
        lambda: c.element(b"LL", 1, 1),
        lambda: c.element(b"L", 1.0, 1),
        lambda: c.element(b"L", 1, None),
        lambda: c.element(b"L", 1),
        lambda: c.key_record(1, 0, 0, 0, "name", b""),
        lambda: c.key_record(1, 0, 0, 0, b"name", None),
        lambda: c.key_record(1, 0, 0, 0.0, b"name", b""),
        lambda: c.key_record(1, 0, 0, 0, b"name"),
        lambda: c.scored(1, b"member"),
        lambda: c.scored(1.0, "member"),
        lambda: c.scored(1.0),
        lambda: c.posts(["1"], [b""]),
        lambda: c.posts([1], ["bound"]),
        lambda: c.posts([1], []),
        lambda: c.posts((1,), [b""]),
        lambda: c.words({b"a": b"b"}),
        lambda: c.words([b"a", "b"]),
        lambda: c.rows_in_order([(b"a", b"b")]),
        lambda: c.rows_in_order({"a": b"b"}),
        lambda: c.rows_in_order({b"a": 1}),
        lambda: c.left_of((b"a",), b"a"),
        lambda: c.right_of(["a"], b"a"),
    ):
        with pytest.raises(TypeError):
            call()


def test_what_is_put_in_and_taken_out_leaves_the_others_in_order(made: Any) -> None:
    chance = random.Random(5)
    words: list[bytes] = []
    for word in some_bytes(chance, 500):
        assert made.put_in(words, word) is None
    assert len(words) > 100 and words == sorted(words)
    expected = list(words)
    for word in some_bytes(chance, 500):
        assert made.take_out(words, word) is (word in expected)
        if word in expected:
            expected.remove(word)
        assert words == expected
    assert made.take_out([], b"a") is False


def test_what_is_not_bytes_is_put_nowhere(made: Any) -> None:
    with pytest.raises(TypeError):
        made.put_in([b"a"], "b")
    with pytest.raises(TypeError):
        made.take_out([b"a"], 1)


def test_changes_are_as_the_journal_reads_them(made: Any) -> None:
    chance = random.Random(6)
    rows: dict[bytes, bytes | None] = {
        key: None if chance.random() < 0.3 else chance.randbytes(chance.choice([0, 1, 300, 70_000]))
        for key in some_bytes(chance, 100)
    }
    assert made.changes(rows) == key_bytes.pure_changes(rows)
    assert made.changes({}) == b""
    assert made.changes({b"a": b"", b"b": None}) == b"\0\1\0\0\0\0a" + b"\0\1\xff\xff\xff\xffb"


def test_rows_count_more_than_their_values(made: Any) -> None:
    assert made.bytes_of_rows({}) == 0
    assert made.bytes_of_rows({b"a": b"xyz", b"b": None, b"c": b""}) == 3 * key_bytes.ROW_BYTES + 3


@pytest.mark.parametrize("rows", [[(b"a", b"b")], {"a": b"b"}, {b"a": "b"}, {b"a": 1}])
def test_what_is_no_row_is_no_change(made: Any, rows: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        made.changes(rows)
