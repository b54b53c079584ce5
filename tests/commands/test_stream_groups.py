"""XGROUP, and XINFO GROUPS and CONSUMERS."""

from __future__ import annotations

import pytest

from .group_requests import BAD_ID, BAD_NUMBER, NO_KEY, WRONG_TYPE, GroupClient
from .recorded_session import House

pytestmark = pytest.mark.settings(notify_keyspace_events="KEA")

BUSY = "BUSYGROUP Consumer Group name already exists"
NEGATIVE = "ERR value for ENTRIESREAD must be positive or -1"


@pytest.fixture
def client(house: House) -> GroupClient:
    return GroupClient(house)


def usage(word: str) -> str:
    return f"ERR unknown subcommand or wrong number of arguments for '{word}'. Try XGROUP HELP."


def no_group(name: str = "g", key: str = "t") -> str:
    return f"NOGROUP No such consumer group '{name}' for key name '{key}'"


def test_a_group_begins_where_it_is_told_to(client: GroupClient) -> None:
    client.add("1-1", "2-1", "3-1")
    for name, start in (("all", "0"), ("end", "$"), ("middle", "2"), ("known", "3-1 ENTRIESREAD 3")):
        assert client.do(f"XGROUP CREATE t {name} {start}") == b"OK"
    shown = [dict(zip(group[::2], group[1::2], strict=True)) for group in client.do("XINFO GROUPS t")]
    assert [
        (group[b"name"], group[b"last-delivered-id"], group[b"entries-read"], group[b"lag"]) for group in shown
    ] == [
        (b"all", b"0-0", None, 3),
        (b"end", b"3-1", None, 0),
        (b"known", b"3-1", 3, 0),
        (b"middle", b"2-0", None, None),
    ]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("XGROUP CREATE none g 0", NO_KEY),
        ("XGROUP CREATE none g x ENTRIESREAD x", BAD_NUMBER),
        ("XGROUP CREATE none g x", NO_KEY),
        ("XGROUP CREATE text g 0 MKSTREAM", WRONG_TYPE),
        ("XGROUP CREATE text g 0 NONSENSE", usage("CREATE")),
        ("XGROUP CREATE t g 0 ENTRIESREAD", usage("CREATE")),
        ("XGROUP CREATE t g 0 ENTRIESREAD -2", NEGATIVE),
        ("XGROUP CREATE t g x", BAD_ID),
        ("XGROUP CREATE t g -", BAD_ID),
        ("XGROUP CREATE t g 0", BUSY),
        ("XGROUP CREATE t new x MKSTREAM MKSTREAM MKSTREAM MKSTREAM", usage("CREATE")),
        ("XGROUP CREATE t new", "ERR wrong number of arguments for 'xgroup|create' command"),
        ("XGROUP SETID none g 0", NO_KEY),
        ("XGROUP SETID t no 0", no_group("no")),
        ("XGROUP SETID t g x", BAD_ID),
        ("XGROUP SETID t g 0 MKSTREAM", usage("SETID")),
        ("XGROUP SETID t g 0 ENTRIESREAD 1 ENTRIESREAD 1", usage("SETID")),
        ("XGROUP SETID text g 0", WRONG_TYPE),
        ("XGROUP DESTROY none g", NO_KEY),
        ("XGROUP DESTROY text g", WRONG_TYPE),
        ("XGROUP CREATECONSUMER none g c", NO_KEY),
        ("XGROUP CREATECONSUMER t no c", no_group("no")),
        ("XGROUP DELCONSUMER t no c", no_group("no")),
        ("XGROUP NONSENSE t g", "ERR unknown subcommand 'NONSENSE'. Try XGROUP HELP."),
        ("XINFO GROUPS none", "ERR no such key"),
        ("XINFO GROUPS text", WRONG_TYPE),
        ("XINFO CONSUMERS none g", "ERR no such key"),
        ("XINFO CONSUMERS t no", no_group("no")),
    ],
)
def test_what_is_wrong_is_refused_in_redis_order_and_words(client: GroupClient, words: str, refusal: str) -> None:
    client.do("SET text x")
    client.add("5-1")
    client.do("XGROUP CREATE t g 0")
    assert client.do(words) == refusal
    assert [group[1] for group in client.do("XINFO GROUPS t")] == [b"g"]


def test_names_in_errors_end_at_a_nul_and_stay_on_one_line(client: GroupClient) -> None:
    client.add("1-1")
    said = client.session.do(b"XGROUP", b"SETID", b"t", b"no\r\nsuch\0thing", b"0")
    assert said == b"-NOGROUP No such consumer group 'no  such' for key name 't'\r\n"


@pytest.mark.parametrize("name", [b"", b"\0\r\n\xff", b"x" * 100_000])
def test_groups_and_consumers_have_names_of_any_bytes(client: GroupClient, name: bytes) -> None:
    client.do("XGROUP", "CREATE", "t", name, "$", "MKSTREAM")
    assert client.do("XGROUP", "CREATECONSUMER", "t", name, name) == 1
    client.house.engine.keyspace.stored.forget()  # type: ignore[union-attr]
    assert client.do("XGROUP", "CREATECONSUMER", "t", name, name) == 0
    assert client.do("XINFO GROUPS t")[0][1] == name
    assert client.do("XINFO", "CONSUMERS", "t", name) == [[b"name", name, b"pending", 0, b"idle", 0]]


def test_setid_may_go_back_and_to_the_very_end(client: GroupClient) -> None:
    client.add("1-1", "2-1")
    client.do("XGROUP CREATE t g $ ENTRIESREAD 2")
    for start, last in (
        ("-", b"0-0"),
        ("$", b"2-1"),
        ("+", b"18446744073709551615-18446744073709551615"),
        ("1", b"1-0"),
    ):
        assert client.do(f"XGROUP SETID t g {start}") == b"OK"
        group = client.do("XINFO GROUPS t")[0]
        assert group[7] == last
        assert group[9] is None


def test_a_consumer_that_is_deleted_tells_how_much_was_pending_with_it(client: GroupClient) -> None:
    client.add("1-1", "2-1", "3-1")
    client.do("XGROUP CREATE t g 0")
    client.do("XREADGROUP GROUP g a COUNT 2 STREAMS t >")
    client.do("XREADGROUP GROUP g b STREAMS t >")
    assert client.do("XGROUP DELCONSUMER t g nobody") == 0
    assert client.do("XGROUP DELCONSUMER t g a") == 2
    assert client.pending() == [(b"3-1", b"b", 0, 1)]


def test_consumers_tell_for_how_long_they_have_been_idle(client: GroupClient) -> None:
    client.add("1-1", "2-1")
    client.do("XGROUP CREATE t g 0")
    client.do("XREADGROUP GROUP g a COUNT 1 STREAMS t >")
    client.house.clock.now += 1.5
    client.do("XREADGROUP GROUP g b STREAMS t >")
    assert client.do("XINFO CONSUMERS t g") == [
        [b"name", b"a", b"pending", 1, b"idle", 1500],
        [b"name", b"b", b"pending", 1, b"idle", 0],
    ]
    client.do("XREADGROUP GROUP g a STREAMS t 0")
    assert client.do("XINFO CONSUMERS t g")[0][5] == 0


def test_resp3_shows_groups_and_consumers_as_maps(house: House) -> None:
    client = GroupClient(house, protocol=3)
    client.do("XGROUP CREATE t g $ MKSTREAM")
    client.do("XGROUP CREATECONSUMER t g c")
    assert client.do("XINFO GROUPS t") == [
        {b"name": b"g", b"consumers": 1, b"pending": 0, b"last-delivered-id": b"0-0", b"entries-read": None, b"lag": 0}
    ]
    assert client.do("XINFO CONSUMERS t g") == [{b"name": b"c", b"pending": 0, b"idle": 0}]


def test_a_transaction_does_not_mind_what_groups_do_to_a_watched_key(client: GroupClient) -> None:
    client.add("1-1")
    client.do("XGROUP CREATE t g 0")
    other = GroupClient(client.house)
    client.do("WATCH t")
    other.do("XREADGROUP GROUP g c STREAMS t >")
    other.do("XACK t g 1-1")
    client.do("MULTI")
    client.do("PING")
    assert client.do("EXEC") == [b"PONG"]


def test_what_happens_to_groups_is_told_as_keyspace_events(client: GroupClient) -> None:
    listener = GroupClient(client.house, protocol=3)
    listener.session.do("PSUBSCRIBE", "__keyevent*")
    client.do("XGROUP CREATE t g $ MKSTREAM")
    client.add("1-1")
    for words in (
        "XGROUP CREATECONSUMER t g c",
        "XGROUP CREATECONSUMER t g c",
        "XREADGROUP GROUP g new STREAMS t >",
        "XACK t g 1-1",
        "XGROUP SETID t g 0",
        "XGROUP DELCONSUMER t g nobody",
        "XGROUP DELCONSUMER t g c",
        "XGROUP DESTROY t g",
        "XGROUP DESTROY t g",
    ):
        client.do(words)
    said = listener.session.heard()
    events = [line.split(b":")[1] for line in said.split(b"\r\n") if line.startswith(b"__keyevent@")]
    create = b"xgroup-createconsumer"
    expected = [b"xgroup-create", b"xadd", create, create, b"xgroup-setid", b"xgroup-delconsumer", b"xgroup-destroy"]
    assert events == expected


def test_help_names_every_subcommand(client: GroupClient) -> None:
    lines = client.do("XGROUP HELP")
    assert lines[0] == b"XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    words = {line.split(b" ")[0] for line in lines[1:] if not line.startswith(b" ")}
    assert words == {b"CREATE", b"CREATECONSUMER", b"DELCONSUMER", b"DESTROY", b"SETID", b"HELP"}
