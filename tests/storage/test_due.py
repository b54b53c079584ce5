"""What is to be done when: deadlines, deferred entries, released ones, and where to look for what is in flight."""

from __future__ import annotations

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.groups import in_flight, released
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics import deadlines, deferred, entry_ids
from rlite_pubsub.storage.topics.deadlines import NEVER, Deadline, GroupRow, TopicRow

PLACE, ELSEWHERE = b"p" * 20, b"e" * 20
OF_GROUP = released.prefix(7, 1)


def packed(number: int) -> bytes:
    return entry_ids.pack((number, 0))


def order(txn: Txn) -> list[Deadline]:
    """All deadlines, which are removed."""
    found = []
    while (first := deadlines.first(txn)) is not None:
        found.append(first)
        deadlines.remove(txn, first)
    return found


def test_deadlines_come_in_their_order_and_never_is_not_among_them(environment: Environment) -> None:
    def work(txn: Txn) -> list[Deadline]:
        deadlines.put_topic(txn, 7, TopicRow(30, 1, PLACE))
        deadlines.put_group(txn, 7, PLACE, 1, GroupRow(10, b"one"))
        deadlines.put_group(txn, 8, PLACE, 1, GroupRow(NEVER, b"never"))
        deadlines.put_group(txn, 9, PLACE, 2, GroupRow(40, b"two"))
        deadlines.put_group(txn, 9, PLACE, 2, GroupRow(20, b"two"))
        return order(txn)

    assert environment.write(work) == [(10, 7, 1), (20, 9, 2), (30, 7, 0)]


def test_group_that_has_a_deadline_gives_its_topic_a_row_and_leaves_it_behind(environment: Environment) -> None:
    def work(txn: Txn) -> list[object]:
        deadlines.put_group(txn, 7, PLACE, 1, GroupRow(10, b"g" * 1000))
        found = [deadlines.group_row(txn, 7, 1), deadlines.topic_row(txn, 7)]
        deadlines.remove_group(txn, 7, 1)
        deadlines.remove_group(txn, 7, 1)
        return [*found, deadlines.group_row(txn, 7, 1), deadlines.topic_row(txn, 7), order(txn)]

    row = TopicRow(NEVER, 0, PLACE)
    assert environment.write(work) == [GroupRow(10, b"g" * 1000), row, None, row, []]


def test_moved_topic_is_found_at_its_new_place_and_a_copied_one_has_the_same_deadlines(
    environment: Environment,
) -> None:
    def work(txn: Txn) -> tuple[object, ...]:
        deadlines.move(txn, 6, ELSEWHERE)
        deadlines.put_topic(txn, 7, TopicRow(30, 2, PLACE))
        deadlines.put_group(txn, 7, PLACE, 1, GroupRow(10, b"one"))
        deadlines.move(txn, 7, ELSEWHERE)
        deadlines.copy(txn, 7, 8, PLACE)
        deadlines.copy(txn, 6, 9, PLACE)
        rows = [deadlines.topic_row(txn, topic) for topic in (6, 7, 8, 9)]
        return (*rows, deadlines.group_row(txn, 8, 1), order(txn))

    assert environment.write(work) == (
        None,
        TopicRow(30, 2, ELSEWHERE),
        TopicRow(30, 2, PLACE),
        None,
        GroupRow(10, b"one"),
        [(10, 7, 1), (10, 8, 1), (30, 7, 0), (30, 8, 0)],
    )


def test_deferred_entries_of_one_time_stay_in_the_order_in_which_they_came(environment: Environment) -> None:
    def work(txn: Txn) -> list[tuple[int, int, bytes]]:
        txn.put(databases.DEFERRED, b"what is before")
        txn.put(databases.DEFERRED + b"\xff" * 40, b"what is behind")
        numbers = [deferred.add(txn, 7, due, b"%d" % place) for place, due in enumerate([5, 3, 5, 2**48, 3])]
        assert numbers == [0, 0, 1, 0, 1]
        deferred.add(txn, 8, 5, b"another topic's")
        found = list(deferred.walk(txn, 7))
        deferred.copy(txn, 7, 9)
        assert list(deferred.walk(txn, 9)) == found
        deferred.delete(txn, 7, found[0].ticket)
        assert list(deferred.walk(txn, 7)) == found[1:]
        return [tuple(one) for one in found]  # type: ignore[misc]

    assert environment.write(work) == [(3, 0, b"1"), (3, 1, b"4"), (5, 0, b"0"), (5, 1, b"2"), (2**48, 0, b"3")]


def test_a_released_entry_of_an_earlier_version_has_no_time_of_its_last_delivery(environment: Environment) -> None:
    entry = Released(packed(1), 5, 2, 1234)

    def work(txn: Txn) -> None:
        released.put(txn, OF_GROUP, entry)
        assert released.get(txn, OF_GROUP, packed(1)) == entry
        txn.put(OF_GROUP + b"\0" + packed(1), (5).to_bytes(8, "big") + (2).to_bytes(8, "big"))
        assert released.get(txn, OF_GROUP, packed(1)) == entry._replace(delivered_ms=0)

    environment.write(work)


def test_released_entries_come_by_their_times_and_then_by_their_ids(environment: Environment) -> None:
    def work(txn: Txn) -> None:
        for number, due in [(5, 0), (3, 0), (1, 70), (2, 60), (4, 60)]:
            released.put(txn, OF_GROUP, Released(packed(number), due, number))
        released.put(txn, released.prefix(7, 2), Released(packed(9), 0, 1))

        def ids(now_ms: int, limit: int | None = None) -> list[int]:
            return [one.deliveries for one in released.due(txn, OF_GROUP, now_ms, limit)]

        assert [ids(now) for now in (0, 59, 60, 70)] == [[3, 5], [3, 5], [3, 5, 2, 4], [3, 5, 2, 4, 1]]
        assert ids(70, 3) == [3, 5, 2]
        assert [released.first_due_ms(txn, OF_GROUP, after) for after in (-1, 0, 60, 70)] == [0, 60, 70, None]
        assert [released.count_after(txn, OF_GROUP, now) for now in (0, 60, 70)] == [3, 1, 0]
        assert released.first_id(txn, OF_GROUP) == packed(1)
        assert list(released.ids_from(txn, OF_GROUP, packed(4))) == [packed(4), packed(5)]
        found = released.get(txn, OF_GROUP, packed(2))
        assert found == Released(packed(2), 60, 2)
        released.delete(txn, OF_GROUP, found)
        assert released.get(txn, OF_GROUP, packed(2)) is None
        released.delete_all(txn, 7, 1)
        assert (ids(100), released.first_id(txn, OF_GROUP)) == ([], None)
        assert released.first_id(txn, released.prefix(7, 2)) == packed(9)

    environment.write(work)


def test_deliveries_of_one_time_share_a_record_and_new_ones_are_apart(environment: Environment) -> None:
    def work(txn: Txn) -> list[tuple[int, bytes, bytes]]:
        for kind, first, last in [(in_flight.NEW, 5, 6), (in_flight.NEW, 7, 9), (in_flight.AGAIN, 1, 1)]:
            in_flight.note(txn, 7, 1, 100, kind, packed(first), packed(last))
        in_flight.note(txn, 7, 1, 90, in_flight.AGAIN, packed(2), packed(3))
        in_flight.note(txn, 7, 2, 1, in_flight.NEW, packed(4), packed(4))
        found = list(in_flight.walk(txn, 7, 1))
        in_flight.go_on_from(txn, found[0], None)
        in_flight.go_on_from(txn, found[1], packed(8))
        assert [(one.first, one.last) for one in in_flight.walk(txn, 7, 1)][0] == (packed(8), packed(9))
        in_flight.delete_all(txn, 7, 1)
        assert list(in_flight.walk(txn, 7, 1)) == []
        return [one[1:] for one in found]

    assert environment.write(work) == [
        (90, packed(2), packed(3)),
        (100, packed(5), packed(9)),
        (100, packed(1), packed(1)),
    ]
