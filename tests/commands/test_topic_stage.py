"""TOPIC.STAGE, COMMIT, UNSTAGE and SYNC, in the words of a client."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_session import ParsedSession
from recorded_session import House, RecordedSession

from rlite_pubsub.commands.topics import stage
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.topics import entry_ids, stages


class Client(ParsedSession):
    def stage(self, batch: int, partition: int, rows: list[list[bytes]], piece: int = 0, **more: Any) -> Any:
        """As the application `app`, by the attempt 7, for the topic `t`."""
        blob = b"".join(bulk_array(tuple(row)) for row in rows)
        ids = more.get("ids")
        option = ["IDS", b"".join(map(entry_ids.pack, ids))] if ids else []
        words = ("TOPIC.STAGE", "app", batch, partition, more.get("attempt", 7), piece, more.get("topic", "t"))
        return self.do(*words, len(rows), blob, *option)

    def records(self) -> int:
        """How many the store has for stages."""
        return self.house.data.read(lambda txn: len(list(databases.items(txn, databases.STAGES))))


@pytest.fixture
def client(house: House) -> Client:
    return Client(house)


def values(client: Client, topic: str = "t") -> list[bytes]:
    return [fields[1] for _, fields in client.do("XRANGE", topic, "-", "+")]


def rows(*numbers: int) -> list[list[bytes]]:
    return [[b"value", b"%d" % number] for number in numbers]


def test_nothing_is_seen_of_what_is_staged_until_it_is_committed_in_the_order_that_is_said(client: Client) -> None:
    assert client.stage(0, 1, rows(4, 5), attempt=2**64 - 1) == 2
    assert client.stage(0, 0, rows(3), piece=1) == 1
    assert client.stage(0, 0, rows(1, 2)) == 2
    assert client.do("EXISTS", "t") == 0
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, 3, 1, 2**64 - 1, 2) == 1
    assert values(client) == [b"1", b"2", b"3", b"4", b"5"]


def test_a_batch_at_or_below_the_marker_is_not_appended_again(client: Client) -> None:
    client.stage(5, 0, rows(1))
    assert client.do("TOPIC.COMMIT", "app", 5, 0, 7, 1) == 1
    assert client.do("TOPIC.COMMIT", "app", 5, 0, 7, 1) == 0
    client.stage(4, 0, rows(2))
    assert client.do("TOPIC.COMMIT", "app", 4, 0, 7, 1) == 0
    assert values(client) == [b"1"]
    client.stage(6, 0, rows(3))
    assert client.do("TOPIC.COMMIT", "app", 6, 0, 7, 1) == 1
    assert values(client) == [b"1", b"3"]


@pytest.mark.parametrize("said", [0, 1, 3])
def test_a_missing_stage_or_another_count_is_an_error_and_appends_nothing(client: Client, said: int) -> None:
    client.stage(0, 0, rows(1))
    client.stage(0, 1, rows(2, 3))
    refusal = client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1, 1, 7, said)
    assert str(refusal) == f"NOSTAGE partition 1 of batch 0, attempt 7, has 2 rows here, not {said}"
    assert str(client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1, 2, 7, 1)).startswith("NOSTAGE partition 2")
    assert client.do("EXISTS", "t") == 0
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1, 1, 7, 2) == 1


def test_a_piece_that_is_staged_again_takes_the_place_of_the_first(client: Client) -> None:
    client.stage(0, 0, [[b"value", b"x" * 3000]] * 5)
    client.stage(0, 0, rows(1, 2))
    assert client.records() == 2
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, 2) == 1
    assert values(client) == [b"1", b"2"]


def test_another_attempt_at_a_partition_is_not_appended(client: Client) -> None:
    client.stage(0, 0, rows(1, 2), attempt=1)
    client.stage(0, 0, rows(3), attempt=2)
    client.do("TOPIC.COMMIT", "app", 0, 0, 2, 1)
    assert values(client) == [b"3"]


def test_rows_of_one_batch_go_to_several_topics(client: Client) -> None:
    client.do("XADD", "b", "*", "value", "0")
    client.stage(0, 0, rows(1), topic="a")
    client.stage(0, 0, rows(2), piece=1, topic="b")
    client.stage(0, 1, rows(3), topic="a")
    client.do("TOPIC.COMMIT", "app", 0, 0, 7, 2, 1, 7, 1)
    assert (values(client, "a"), values(client, "b")) == ([b"1", b"3"], [b"0", b"2"])


def test_ids_that_are_given_are_kept_and_must_be_above_all_others(client: Client) -> None:
    client.stage(0, 0, rows(1, 2), ids=[(1, 0), (5, 2**64 - 1)])
    client.stage(0, 1, rows(3), ids=[(6, 0)])
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, 2, 1, 7, 1) == 1
    assert [entry[0] for entry in client.do("XRANGE", "t", "-", "+")] == [b"1-0", b"5-18446744073709551615", b"6-0"]
    client.stage(1, 0, rows(9), topic="other")
    client.stage(1, 1, rows(4), ids=[(6, 0)])
    assert "equal or smaller" in str(client.do("TOPIC.COMMIT", "app", 1, 0, 7, 1, 1, 7, 1))
    assert client.do("EXISTS", "other") == 0
    assert "equal or smaller" in str(client.stage(1, 0, rows(1, 2), ids=[(8, 0), (8, 0)]))


def test_ids_that_are_made_are_behind_the_last_one(client: Client) -> None:
    client.do("XADD", "t", f"{2**62}-9", "value", "0")
    client.stage(0, 0, rows(*range(1, 200)))
    client.do("TOPIC.COMMIT", "app", 0, 0, 7, 199)
    assert [entry[0] for entry in client.do("XRANGE", "t", "-", "+")] == [
        b"%d-%d" % (2**62, seq) for seq in range(9, 209)
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=5000)), min_size=1, max_size=4),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_any_row_is_what_xadd_would_have_appended(table: list[list[tuple[bytes, bytes]]], with_ids: bool) -> None:
    client = Client(House())
    words = [[word for pair in row for word in pair] for row in table]
    ids = [(number, 3) for number in range(1, len(words) + 1)] if with_ids else None
    client.stage(0, 0, words, ids=ids)
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, len(words)) == 1
    for number, row in enumerate(words, 1):
        client.do("XADD", "u", f"{number}-3", *row)
    one, other = client.do("XRANGE", "t", "-", "+"), client.do("XRANGE", "u", "-", "+")
    assert one == other if with_ids else [fields for _, fields in one] == [fields for _, fields in other]


@pytest.mark.parametrize("blob", [b"*1\r\n$0\r\n\r\n", b"*2\r\n$1\r\na\r\n$1\r\n", b"*1\r\n:1\r\n", b"*x\r\n"])
def test_what_is_no_row_is_refused(client: Client, blob: bytes) -> None:
    assert isinstance(client.do("TOPIC.STAGE", "app", 0, 0, 7, 0, "t", 1, blob), hiredis.ReplyError)
    assert client.records() == 0


def test_another_count_of_rows_is_refused(client: Client) -> None:
    blob = bulk_array((b"a", b"b"))
    assert str(client.do("TOPIC.STAGE", "app", 0, 0, 7, 0, "t", 2, blob)) == "ERR these are 1 rows, not 2"
    assert client.stage(0, 0, [], ids=None) == 0


def test_another_key_than_a_topic_is_refused_before_anything_is_appended(client: Client) -> None:
    client.do("SET", "s", "v")
    client.stage(0, 0, rows(1), topic="a")
    client.stage(0, 0, rows(2), piece=1, topic="s")
    assert str(client.do("TOPIC.COMMIT", "app", 0, 0, 7, 2)).startswith("WRONGTYPE")
    assert client.do("EXISTS", "a") == 0


def test_unstage_removes_up_to_a_batch(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in range(3):
        client.stage(batch, 0, rows(1))
    client.do("TOPIC.STAGE", "other", 0, 0, 7, 0, "t", 0, b"")
    monkeypatch.setattr(stage, "REMOVED_AT_ONCE", 3)
    assert [client.do("TOPIC.UNSTAGE", "app", 1) for _ in range(3)] == [3, 1, 0]
    assert client.records() == 3
    assert client.do("TOPIC.COMMIT", "app", 2, 0, 7, 1) == 1


def test_what_nobody_commits_is_removed_after_a_day_and_what_is_done_at_once(client: Client) -> None:
    client.stage(0, 0, rows(*range(1000)))
    client.do("TOPIC.STAGE", "x" * 300, 0, 0, 7, 0, "t", 1, bulk_array((b"a", b"b")))
    client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1000)
    client.stage(1, 0, rows(1))
    assert client.records() == 4  # batch 0 of app is done, and the long one's are not old yet
    client.house.clock.now += stages.KEPT_MS / 1000 + 1
    client.stage(2, 0, rows(1))
    assert client.records() == 2


def test_what_was_given_up_goes_though_nobody_stages_again(client: Client) -> None:
    client.stage(0, 0, rows(1))
    client.house.engine.cron(client.house.clock.now)
    assert client.records() == 2
    client.house.clock.now += stages.KEPT_MS / 1000 + 1
    client.house.engine.cron(client.house.clock.now)
    client.house.engine.commit()
    assert client.records() == 0


def test_a_marker_is_forgotten_when_that_was_said(client: Client) -> None:
    client.stage(0, 0, rows(1))
    assert client.do("TOPIC.COMMIT", "app", 0, "FORGET", 60_000, 0, 7, 1) == 1
    client.house.clock.now += 59
    client.stage(1, 0, rows(1))
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1) == 0
    client.house.clock.now += 2
    client.stage(0, 0, rows(2))
    assert client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1) == 1
    assert values(client) == [b"1", b"2"]


def test_a_commit_wakes_who_waits_for_the_topic(client: Client) -> None:
    reader = RecordedSession(client.house.engine)
    assert reader.do("XREAD", "BLOCK", "0", "STREAMS", "t", "$") == b""
    client.stage(0, 0, rows(1))
    client.do("TOPIC.COMMIT", "app", 0, 0, 7, 1)
    assert b"value" in reader.recorded


def test_sync_answers_once_it_is_on_the_disk(client: Client) -> None:
    assert client.session.do("TOPIC.SYNC") == b""
    assert client.session.blocked is not None
    said = b""
    while not said:
        client.house.timers.advance(0.005)
        said = client.session.heard()
    assert said == b"+OK\r\n"
    assert client.session.blocked is None


@pytest.mark.parametrize("rest", [["0"], ["0", "7"], ["0", "7", "x"], ["FORGET"], ["FORGET", "x"], ["-1", "7", "1"]])
def test_a_commit_that_makes_no_sense_is_refused(client: Client, rest: list[str]) -> None:
    assert isinstance(client.do("TOPIC.COMMIT", "app", 0, *rest), hiredis.ReplyError)


# -- whose an application is


def as_user(house: House, name: str, *rules: str) -> Client:
    admin, client = house.session(), Client(house)
    assert admin.do("ACL", "SETUSER", name, "reset", "on", "nopass", *rules) == b"+OK\r\n"
    assert client.do("AUTH", name, "") in ("OK", b"OK")
    return client


def test_nobody_commits_voids_or_deletes_what_another_user_has_staged(client: Client) -> None:
    other = as_user(client.house, "other", "+@stream", "+@write", "~mall:*")
    client.stage(7, 0, rows(1))
    assert str(other.do("TOPIC.COMMIT", "app", 7, 0, 7, 1)).startswith("NOSTAGE")
    assert other.stage(7, 0, rows(2), topic="mall:t") == 1
    assert other.do("TOPIC.UNSTAGE", "app", 9) == 2
    assert other.do("TOPIC.COMMIT", "app", 2**63 - 1) == 1
    client.stage(8, 0, [])  # sweeps what is done
    assert client.do("TOPIC.COMMIT", "app", 7, 0, 7, 1) == 1
    assert values(client) == [b"1"]


@pytest.mark.parametrize("name", ["app", "other\0app", "default\0app"])
def test_no_name_of_an_application_is_that_of_another_users(client: Client, name: str) -> None:
    other = as_user(client.house, "other", "allcommands", "allkeys")
    assert other.do("TOPIC.COMMIT", "app", 9) == 1
    assert client.do("TOPIC.COMMIT", name, 5) == 1
    assert client.do("TOPIC.COMMIT", name, 5) == 0
    assert other.do("TOPIC.COMMIT", "app", 10) == 1


def test_a_commit_needs_the_right_to_write_to_every_topic_of_the_batch_when_it_is_made(client: Client) -> None:
    other = as_user(client.house, "other", "+@write", "~a", "~b")
    other.stage(0, 0, rows(1), topic="a")
    other.stage(0, 0, rows(2), piece=1, topic="b")
    client.do("ACL", "SETUSER", "other", "resetkeys", "~a", "%R~b")
    assert str(other.do("TOPIC.COMMIT", "app", 0, 0, 7, 2)).startswith("NOPERM")
    assert client.do("EXISTS", "a", "b") == 0
    assert client.do("ACL", "LOG")[0][b"object"] == b"b"
    client.do("ACL", "SETUSER", "other", "~b")
    assert other.do("TOPIC.COMMIT", "app", 0, 0, 7, 2) == 1
