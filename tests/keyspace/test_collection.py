"""Lists, sets and hashes over turns: what one turn did every process finds, and nothing is left of what is gone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time
from typing import TypeVar

import pytest
from engines import open_data

from rlite_pubsub.keyspace.collection import Collection
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.packing import Packing
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import RecordDamaged
from rlite_pubsub.storage.keys import key_records, members
from rlite_pubsub.storage.keys.rows import Rows

OF_COLLECTIONS = (
    databases.ELEMENTS,
    databases.MEMBERS,
    databases.FIELDS,
    databases.FIELD_EXPIRIES,
    databases.EXPIRING,
)
C = TypeVar("C", bound=Collection)
NOW_MS = 1000
FEW, MANY = 3, 500


class Clock:
    """A time that stands."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def keyspace(environment: Environment, clock: Callable[[], int] = lambda: NOW_MS) -> Keyspace:
    return Keyspace(environment, clock)


def content(environment: Environment) -> int:
    """How many records the store has beside those of keys."""
    return environment.read(lambda txn: sum(1 for byte in OF_COLLECTIONS for _ in databases.items(txn, byte)))


def changeable(here: Keyspace, kind: type[C], name: bytes = b"key") -> C:
    """The collection, which there is, to be changed."""
    found = here.for_change(0, name)
    assert isinstance(found, kind)
    return found


def sweep(here: Keyspace) -> None:
    while sweep_some(here.parts, 100):
        assert here.end_turn() is None
    assert here.end_turn() is None


# -- how much is held in memory


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Environment]:
    opened = open_data(tmp_path / "roomy.mdb", 1 << 30, 1 << 28)
    yield opened
    opened.close()


def held(found: Collection) -> int:
    """About how many bytes of its content it has in memory."""
    return found._rows.held_bytes


def test_fields_that_are_replaced_by_long_ones_are_not_all_held(roomy: Environment) -> None:
    here = keyspace(roomy)
    found = here.create(Hash, 0, b"key")
    found.put([word for number in range(1000) for word in (b"%d" % number, b"v")])
    assert [found.get(b"%d" % number) for number in range(1000)] == [b"v"] * 1000
    for number in range(1000):
        found = changeable(here, Hash)
        found.put([b"%d" % number, b"%d" % number * 20_000])
        assert held(found) < 17 << 20
        if number % 20 == 19:
            assert here.end_turn() is None
    assert here.end_turn() is None
    assert all(found.get(b"%d" % number) == b"%d" % number * 20_000 for number in range(0, 1000, 7))
    here.end_turn()


def test_order_of_which_much_is_passed_is_not_all_held(roomy: Environment) -> None:
    here = keyspace(roomy)
    found = here.create(SortedSet, 0, b"key")
    found.take([(b"%0100d" % number, float(number)) for number in range(60_000)])
    assert here.end_turn() is None
    most = 0
    for number in range(0, 60_000, 10):
        assert found.members(number, number + 1) == [b"%0100d" % number]
        most = max(most, held(found))
    assert 8 << 20 < most < 17 << 20
    here.end_turn()


def test_elements_ahead_of_one_that_is_popped_are_not_read_by_the_megabyte(roomy: Environment) -> None:
    here = keyspace(roomy)
    found = here.create(List, 0, b"key")
    found.push([b"%d" % number * 40_000 for number in range(100)], left=False)
    assert here.end_turn() is None
    found = changeable(here, List)
    for number in range(50):
        assert found.pop(1, left=True) == [b"%d" % number * 40_000]
        assert found.pop(1, left=False) == [b"%d" % (99 - number) * 40_000]
        assert held(found) < 1 << 20
    here.end_turn()


# -- against a model


@pytest.mark.parametrize("size", [FEW, MANY])
def test_a_list_is_what_a_list_would_be_in_every_process(environment: Environment, size: int) -> None:
    one, other = keyspace(environment), keyspace(environment)
    luck = random.Random(size)
    model = [b"%d" % luck.randrange(5) for _ in range(size)]
    one.create(List, 0, b"key").push(model, left=False)
    assert one.end_turn() is None
    for step in range(1500):
        here = luck.choice((one, other))
        found = changeable(here, List)
        element, left = b"%d" % luck.randrange(5), luck.random() < 0.5
        place = luck.randrange(len(model) + 1)
        match luck.randrange(9):
            case 0 | 1:
                added = [b"%d" % luck.randrange(5) for _ in range(luck.randrange(1, 4))]
                found.push(added, left=left)
                model = [*added[::-1], *model] if left else [*model, *added]
            case 2 | 3 if model:
                count = luck.randrange(4)
                expected = model[:count] if left else model[: -count - 1 : -1] if count else []
                model = model[len(expected) :] if left else model[: len(model) - len(expected)]
                assert found.pop(count, left=left) == expected
            case 4:
                found.insert(place, element)
                model.insert(place, element)
            case 5 if place < len(model):
                found.set(place, element)
                model[place] = element
                assert found.at(place) == element
            case 6:
                count = luck.choice((1, 2, -1, -2))
                places = [at for at, one_of in enumerate(model) if one_of == element]
                gone = set(places[:count] if count > 0 else places[count:])
                assert found.remove(element, count) == len(gone)
                model = [one_of for at, one_of in enumerate(model) if at not in gone]
            case 7 if luck.random() < 0.05:
                found.keep(1, len(model) - 1) if len(model) > 2 else None
                model = model[1:-1] if len(model) > 2 else model
            case _:
                first = found.find(element)
                assert first == (model.index(element) if element in model else None)
        assert here.end_turn() is None
        if step % 25 == 0:
            seen = other.find(0, b"key")
            assert isinstance(seen, List) and seen.slice(0, len(seen)) == model == list(seen.walk())
            assert list(seen.walk(backwards=True)) == model[::-1]
            other.end_turn()
    assert content(environment) in (0, len(model))


def test_all_of_an_element_go_from_a_large_list_from_wherever_they_are(environment: Environment) -> None:
    here = keyspace(environment)
    for places in ((0, 1, 5), (2000, 2500, 2999), (0, 1500, 2999), tuple(range(0, 3000, 3))):
        model = [b"x" if place in places else b"%d" % place for place in range(3000)]
        found = here.create(List, 0, b"key")
        found.push(model, left=False)
        assert found.remove(b"x", 0) == len(places)
        assert found.slice(0, len(found)) == [element for element in model if element != b"x"]
        assert here.end_turn() is None
        assert content(environment) == len(found)
        here.delete(0, b"key")
        sweep(here)


def test_what_a_turn_has_set_and_pushed_is_what_it_pops(environment: Environment) -> None:
    one, other = keyspace(environment), keyspace(environment)
    luck = random.Random(3)
    model = [b"%d" % number for number in range(MANY)]
    one.create(List, 0, b"key").push(model, left=False)
    assert one.end_turn() is None
    for _ in range(60):
        here = luck.choice((one, one, one, other))
        found = changeable(here, List)
        for step in range(luck.choice((1, 60))):
            left = luck.random() < 0.5
            place = luck.choice((0, 1, 2, 3, 5, -1, -2, -3, -5)) % len(model)
            match luck.randrange(4):
                case 0:
                    found.set(place, b"set-%d" % step)
                    model[place] = b"set-%d" % step
                case 1:
                    found.push([b"new-%d" % step], left=left)
                    model.insert(0 if left else len(model), b"new-%d" % step)
                case _ if len(model) > 10:
                    assert found.pop(1, left=left) == [model.pop(0 if left else -1)]
                case _:
                    found.push(added := [b"%d" % number for number in range(MANY)], left=False)
                    model += added
        if luck.random() < 0.2:
            assert found.slice(0, len(found)) == model
        assert here.end_turn() is None
    assert changeable(other, List).slice(0, len(model)) == model
    other.end_turn()


def test_what_a_turn_has_added_and_removed_is_what_it_draws_from(environment: Environment) -> None:
    one, other = keyspace(environment), keyspace(environment)
    luck = random.Random(4)
    model = {b"word-%d" % number for number in range(MANY)}
    one.create(Set, 0, b"key").add(model)
    assert one.end_turn() is None
    for turn in range(60):
        here = luck.choice((one, one, one, other)) if turn < 40 else one
        found = changeable(here, Set)
        for _ in range(luck.choice((1, 60))):
            drawn = found.any()
            assert drawn in model and found.has(drawn)
            chosen = b"word-%d" % luck.randrange(3 * MANY)
            assert found.has(chosen) == (chosen in model)
            if luck.random() < (0.9 if turn < 20 else 0.4):
                assert found.add([chosen]) == (chosen not in model)
                model.add(chosen)
            elif len(model) > 1:
                assert found.remove([drawn]) == 1
                model.remove(drawn)
            assert len(found) == len(model)
        assert here.end_turn() is None
    for here in (one, other):
        found = changeable(here, Set)
        drawn_often = Counter(found.any() for _ in range(len(model) * 50))
        assert set(drawn_often) == model == set(found.members())
        assert min(drawn_often.values()) > 5 and max(drawn_often.values()) < 110  # 50, and a deviation is 7
        here.end_turn()
    assert content(environment) == len(model)


@pytest.mark.parametrize("words", ["numbers", "words"])
@pytest.mark.parametrize("size", [FEW, MANY * 2])
def test_a_set_is_what_a_set_would_be_in_every_process(environment: Environment, size: int, words: str) -> None:
    one, other = keyspace(environment), keyspace(environment)
    luck = random.Random(size)
    make = (lambda: b"%d" % luck.randrange(2 * size)) if words == "numbers" else (
        lambda: b"word-%d" % luck.randrange(2 * size)
    )  # fmt: skip
    model = {make() for _ in range(size)}
    one.create(Set, 0, b"key").add(model)
    assert one.end_turn() is None
    for step in range(1500):
        here = luck.choice((one, other))
        found = changeable(here, Set)
        chosen = {make() for _ in range(luck.randrange(1, 4))}
        if luck.random() < 0.5:
            assert found.add(chosen) == len(chosen - model)
            model |= chosen
        elif luck.random() < 0.8:
            assert found.remove(chosen) == len(chosen & model)
            model -= chosen
        else:
            drawn = found.sample(3)
            assert set(drawn) <= model and len(set(drawn)) == len(drawn) == min(3, len(model))
            assert all(found.has(member) for member in drawn)
        assert here.end_turn() is None
        if step % 50 == 0:
            seen = other.find(0, b"key")
            assert isinstance(seen, Set) and set(seen.members()) == model and len(seen) == len(model)
            other.end_turn()
    assert content(environment) in (0, len(model))


@pytest.mark.parametrize("words", ["numbers", "words"])
def test_many_members_at_once_are_added_as_one_by_one(roomy: Environment, words: str) -> None:
    one, other = keyspace(roomy), keyspace(roomy)
    luck = random.Random(words)
    form = b"%d" if words == "numbers" else b"word-%d"
    model = {b"-1"}
    one.create(Set, 0, b"key").add(model)
    assert one.end_turn() is None
    for step in range(60):
        here = luck.choice((one, one, other))
        found = changeable(here, Set)
        count = luck.choice((1, 20, 900, 1100, 3000))
        chosen = [form % luck.randrange(20_000) for _ in range(count)]
        for attempt in range(luck.choice((1, 1, 2))):  # in one turn, too
            assert found.add(chosen) == (0 if attempt else len(set(chosen) - model))
            model |= set(chosen)
        if luck.random() < 0.5:
            gone = luck.sample(sorted(model), min(len(model), 200))
            assert found.remove(gone) == len(gone)
            model -= set(gone)
        if model and luck.random() < 0.5:
            drawn = [found.any() for _ in range(50)]
            assert model.issuperset(drawn) and all(map(found.has, drawn)) and not found.has(b"nobody")
        assert len(found) == len(model)
        assert here.end_turn() is None
        if step % 10 == 0:
            assert set(changeable(other, Set).members()) == model
            other.end_turn()
    assert content(roomy) == len(model)


def test_members_that_were_added_at_once_are_drawn_as_often_as_others(roomy: Environment) -> None:
    here = keyspace(roomy)
    found = here.create(Set, 0, b"key")
    found.add([b"few-%d" % number for number in range(200)])
    assert found.any()  # so that it has read some
    found.add([b"many-%d" % number for number in range(1800)])
    drawn = Counter(found.any()[:3] for _ in range(8000))
    assert 600 < drawn[b"few"] < 1000


def test_a_large_set_of_integers_stays_one_while_it_may(environment: Environment) -> None:
    here = keyspace(environment)
    here.stored.pack_by(Packing(intset_entries=2000))
    found = here.create(Set, 0, b"key")
    found.add([b"%d" % number for number in range(2000)] * 2)
    assert found.is_of_integers and not found.number
    found.add([b"2000"])
    assert not found.is_of_integers and found.number and len(found) == 2001


def test_a_set_of_integers_says_them_in_order_until_it_has_something_else(environment: Environment) -> None:
    here = keyspace(environment)
    here.stored.pack_by(Packing(intset_entries=4))
    found = here.create(Set, 0, b"key")
    found.add([b"10", b"9", b"-1"])
    assert found.is_of_integers and list(found.members()) == [b"-1", b"9", b"10"]
    found.add([b"a"])
    found.remove([b"a"])
    assert not found.is_of_integers
    assert here.end_turn() is None
    here.stored.forget()
    assert not changeable(here, Set).is_of_integers
    many = here.create(Set, 0, b"many")
    many.add([b"1", b"2", b"3", b"4"])
    assert many.is_of_integers
    many.add([b"5"])
    assert not many.is_of_integers


@pytest.mark.parametrize("size", [FEW, MANY * 2])
def test_a_hash_is_what_a_dict_would_be_in_every_process(environment: Environment, size: int) -> None:
    clock = Clock()
    one, other = keyspace(environment, clock), keyspace(environment, clock)
    luck = random.Random(size)
    model: dict[bytes, bytes] = {b"field-%d" % number: b"%d" % number for number in range(size)}
    dues: dict[bytes, int] = {}
    one.create(Hash, 0, b"key").put([word for pair in model.items() for word in pair])
    assert one.end_turn() is None
    for step in range(2000):
        here = luck.choice((one, other))
        found = changeable(here, Hash)
        name, value = b"field-%d" % luck.randrange(2 * size), b"%d" % luck.randrange(1000)
        match luck.randrange(7):
            case 0 | 1:
                keeps = luck.random() < 0.3
                assert found.put([name, value], keeps_dues=keeps) == (name not in model)
                model[name] = value
                if not keeps:
                    dues.pop(name, None)
            case 2:
                assert found.remove([name, b"never"]) == (name in model)
                model.pop(name, None)
                dues.pop(name, None)
            case 3 | 4 if name in model:
                dues[name] = clock.now_ms + luck.randrange(0, 400) if luck.random() < 0.7 else 0
                found.set_due(name, dues[name])
                if not dues[name]:
                    del dues[name]
            case 5:
                clock.now_ms += luck.randrange(20)
                over = [one_of for one_of, due_ms in dues.items() if due_ms <= clock.now_ms]
                assert all(found.get(one_of) is None for one_of in over)
                assert found.take_over(1000) == len(over)
                for one_of in over:
                    del model[one_of], dues[one_of]
            case _:
                expired = 0 < dues.get(name, 0) <= clock.now_ms
                assert found.get(name) == (None if expired else model.get(name))
        assert found.due_ms == min(dues.values(), default=0)
        assert len(found) == len(model)
        assert here.end_turn() is None
        if step % 50 == 0:
            seen = other.find(0, b"key")
            alive = {name: value for name, value in model.items() if not 0 < dues.get(name, 0) <= clock.now_ms}
            assert isinstance(seen, Hash) and dict(seen.pairs()) == alive
            if seen.is_small:
                assert list(dict(seen.pairs())) == list(alive)
            other.end_turn()
    expiring = content(environment) - (0 if size == FEW and len(model) < 400 else len(model))
    assert expiring == bool(dues) + (len(dues) if size != FEW else 0)


@pytest.mark.parametrize("kind", [Set, Hash])
def test_each_member_is_drawn_as_often_as_any_other(environment: Environment, kind: type[Set] | type[Hash]) -> None:
    here = keyspace(environment)
    names = [b"member-%d" % number for number in range(600)]
    found = here.create(kind, 0, b"key")
    if isinstance(found, Set):
        found.add(names)
        drawn = Counter(found.any() for _ in range(60_000))
    else:
        found.put([word for name in names for word in (name, b"")])
        drawn = Counter(field.name for field in found.any(60_000))
    chi_square = sum((drawn[name] - 100) ** 2 / 100 for name in names)
    assert chi_square < 800  # 599 degrees of freedom: more than that happens once in ten million


def test_what_a_draw_has_read_is_drawn_as_often_as_the_rest(environment: Environment) -> None:
    names = [b"member-%d" % number for number in range(200)]
    found = keyspace(environment).create(Set, 0, b"key")
    found.add(names)
    drawn: Counter[bytes] = Counter()
    drawn_again = 0
    for _ in range(6000):
        found.let_go()
        first, second = found.any(), found.any()
        drawn_again += first == second
        drawn.update((first, second))
    chi_square = sum((drawn[name] - 60) ** 2 / 60 for name in names)
    assert chi_square < 320  # 199 degrees of freedom: more than that happens once in ten million
    assert 2 < drawn_again < 66  # 30, and a deviation is 5.5; the first draw has read a fifth of all


def test_a_set_that_is_said_to_have_more_members_than_it_has_is_damaged(environment: Environment) -> None:
    here = keyspace(environment)
    found = here.create(Set, 0, b"key")
    found.add(b"member-%d" % number for number in range(MANY))
    assert here.end_turn() is None
    prefix = members.prefix(changeable(here, Set).number)
    here.end_turn()
    environment.write(lambda txn: databases.delete_all(txn, prefix))
    with pytest.raises(RecordDamaged):
        changeable(keyspace(environment), Set).any()


# -- how they stand in the store


def test_a_small_one_is_one_record_and_a_large_one_has_one_for_each_member(environment: Environment) -> None:
    here = keyspace(environment)
    here.create(List, 0, b"l").push([b"a", b"bc"], left=False)
    here.create(Set, 0, b"s").add([b"b"])
    here.create(Set, 0, b"i").add([b"5"])
    here.create(Hash, 0, b"h").put([b"f", b"v"])
    expiring = here.create(Hash, 0, b"e")
    expiring.put([b"f", b"v"])
    expiring.set_due(b"f", 0x77)
    assert here.end_turn() is None
    space = environment.read(lambda txn: key_records.space(txn, 0)).number

    def body(name: bytes) -> tuple[int, bytes]:
        record = environment.read(lambda txn: key_records.get(txn, key_records.place(space, name)))
        assert record is not None
        return record.flags, record.body

    number = bytes(8)
    assert body(b"l") == (0, number + bytes.fromhex("00000002 00000001 00000002") + b"abc")
    assert body(b"s") == (0, number + bytes.fromhex("00000001 00000001") + b"b")
    assert body(b"i") == (1, number + bytes.fromhex("00000001 00000001") + b"5")
    assert body(b"h") == (0, number + bytes(8) + bytes.fromhex("00000002 00000001 00000001") + b"fv")
    due = bytes.fromhex("0000000000000077")
    assert body(b"e") == (1, number + due + bytes.fromhex("00000003 00000001 00000001 00000008") + b"fv" + due)
    assert content(environment) == 1  # when the field of the last one expires

    changeable(here, Hash, b"h").put([b"x" * 65, b"v"])
    changeable(here, List, b"l").push([b"x" * 2000], left=True)
    changeable(here, Set, b"s").add([b"x" * 65])
    assert here.end_turn() is None
    first, second, third = (number.to_bytes(8, "big") for number in (1, 2, 3))
    assert body(b"h") == (0, first + bytes(8) + bytes.fromhex("0000000000000002"))
    assert body(b"l") == (0, second + bytes.fromhex("8000000000000000 8000000000000003"))
    assert body(b"s") == (0, third + bytes.fromhex("0000000000000002"))
    assert content(environment) == 1 + 2 + 3 + 2


def made(here: Keyspace, size: int) -> None:
    """One of each kind, of so many members; each field of the hash expires."""
    here.create(List, 0, b"l").push([b"x"] * size, left=True)
    here.create(Set, 0, b"s").add([b"m%d" % number for number in range(size)])
    found = here.create(Hash, 0, b"h")
    for number in range(size):
        found.put([b"%d" % number, b"v" * 70 if size == MANY else b"v"])
        found.set_due(b"%d" % number, 5000 + number)


@pytest.mark.parametrize("size", [FEW, MANY])
def test_nothing_is_left_of_a_collection_that_is_deleted(environment: Environment, size: int) -> None:
    here = keyspace(environment)
    made(here, size)
    assert here.end_turn() is None
    assert here.delete(0, b"l") and here.delete(0, b"s") and here.delete(0, b"h")
    assert here.end_turn() is None
    sweep(here)
    assert content(environment) == 0
    assert here.find(0, b"l") is None and here.databases.size(0) == 0


@pytest.mark.parametrize("size", [FEW, MANY])
def test_a_flushed_database_s_collections_are_swept_up(environment: Environment, size: int) -> None:
    here = keyspace(environment)
    made(here, size)
    here.end_turn()
    here.databases.flush(0)
    here.end_turn()
    sweep(here)
    assert content(environment) == 0


@pytest.mark.parametrize("size", [FEW, MANY])
def test_a_copy_and_a_renamed_one_keep_their_content(environment: Environment, size: int) -> None:
    here = keyspace(environment)
    made(here, size)
    here.end_turn()
    before: dict[bytes, object] = {}
    for name in (b"l", b"s", b"h"):
        found = changeable(here, Collection, name)
        before[name] = seen_in(found)
        here.copy(found, 1, b"copy" + name)
        here.move(changeable(here, Collection, name), 2, b"moved" + name)
    assert here.end_turn() is None
    here.stored.forget()
    for name in (b"l", b"s", b"h"):
        for place in ((1, b"copy" + name), (2, b"moved" + name)):
            seen = here.find(*place)
            assert isinstance(seen, Collection) and seen_in(seen) == before[name]
        assert here.find(0, name) is None
    here.end_turn()
    for name in (b"copyl", b"copys", b"copyh"):
        here.delete(1, name)
    for name in (b"movedl", b"moveds", b"movedh"):
        here.delete(2, name)
    here.end_turn()
    sweep(here)
    assert content(environment) == 0


def seen_in(found: object) -> object:
    match found:
        case List():
            return found.slice(0, len(found))
        case Set():
            return set(found.members())
        case Hash():
            return {field.name: (field.value, field.due_ms) for field in found.fields()}
    raise TypeError


@pytest.mark.sources("replaces a method of a compiled class")
def test_who_holds_all_there_is_does_not_look_for_more(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = keyspace(environment)
    names = [b"%04d" % number for number in range(2 * MANY)]
    some, fields = here.create(Set, 0, b"set"), here.create(Hash, 0, b"hash")
    scored = here.create(SortedSet, 0, b"sorted set")
    for at, name in enumerate(names):  # they are small at first, and become large
        some.add([b"x" + name])
        fields.put([name, name])
        scored.put(name, float(at))
    assert here.end_turn() is None
    some, fields = changeable(here, Set, b"set"), changeable(here, Hash, b"hash")
    scored = changeable(here, SortedSet, b"sorted set")
    assert some.number and fields.number and scored.number

    def nobody(*_: object) -> bytes | None:
        raise AssertionError("looked for in the store")

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "get", nobody)
        assert some.has(b"x0001") and not some.has(b"nobody")
        assert some.add([b"new", b"x0001"]) == 1 and some.remove([b"new", b"nobody"]) == 1
        assert fields.get(b"0001") == b"0001" and fields.get(b"nobody") is None
        assert fields.put([b"new", b"1"]) == 1 and fields.remove([b"new", b"nobody"]) == 1
        assert scored.score(b"0001") == 1.0 and scored.score(b"nobody") is None
        scored.put(b"new", 1.0)
        assert scored.remove([b"new", b"nobody"]) == 1
    here.end_turn()
    here.stored.forget()
    assert changeable(here, Set, b"set").has(b"x0001")  # it holds no more, and looks again
    assert changeable(here, Hash, b"hash").get(b"0499") == b"0499"
    assert changeable(here, SortedSet, b"sorted set").score(b"0499") == 499.0
    assert changeable(here, SortedSet, b"sorted set").score(b"nobody") is None


def test_a_push_to_the_left_of_a_new_list_takes_about_as_long_as_one_to_the_right(keyspace: Keyspace) -> None:
    """An LPUSH of 200,000 elements moved each of them as often as others followed, which took 6 s."""
    added = [b"%d" % number for number in range(60_000)]

    def took(name: bytes, *, left: bool) -> float:
        found = keyspace.create(List, 0, name)
        began = thread_time()
        assert found.push(added, left=left) == len(added)
        took_s = thread_time() - began
        assert found.slice(0, 3) == (added[:-4:-1] if left else added[:3])
        return took_s

    assert took(b"left", left=True) < 8 * took(b"right", left=False)
