"""COMMAND and its subcommands, and the tables of the reference."""

from __future__ import annotations

import pytest
from recorded_session import RecordedSession

from rlite_pubsub.commands.server.introspection import docs_of, info_of
from rlite_pubsub.commands.tables import tables
from rlite_pubsub.engine.access.categories import CATEGORIES, categories_of
from rlite_pubsub.engine.key_places import keys_of
from rlite_pubsub.engine.table import TABLE, Arg, Command, KeySpec
from rlite_pubsub.protocol.encoder import encode

ALL_COMMANDS = [one for parent in TABLE.commands.values() for one in (parent, *parent.subcommands.values())]
NAMES = [one.name.decode() for one in ALL_COMMANDS]


def declared(*specs: KeySpec, arity: int = -2) -> Command:
    return Command(b"test", None, arity, frozenset(), "generic", "1.0.0", "A test", key_specs=specs)


def found(specs: tuple[KeySpec, ...], *args: bytes) -> list[bytes] | None:
    keys = keys_of(declared(*specs), list(args))
    return None if keys is None else [key for key, _ in keys]


def test_count_is_the_number_of_containers_and_plain_commands(session: RecordedSession) -> None:
    assert session.do("COMMAND", "COUNT") == b":%d\r\n" % len(TABLE.commands)
    assert session.do("COMMAND").startswith(b"*%d\r\n*10\r\n" % len(TABLE.commands))
    assert session.do("COMMAND", "INFO") == session.do("COMMAND")


def test_info_of_what_does_not_exist_is_null(session: RecordedSession) -> None:
    assert session.do("COMMAND", "INFO", "nosuch", "ping|x", "client|nosuch") == b"*3\r\n" + b"$-1\r\n" * 3


def test_info_of_a_command_is_its_ten_elements(session: RecordedSession) -> None:
    assert session.do("COMMAND", "INFO", "WATCH") == (
        b"*1\r\n*10\r\n$5\r\nwatch\r\n:-2\r\n*5\r\n+noscript\r\n+loading\r\n+stale\r\n+fast\r\n+allow_busy\r\n"
        b":1\r\n:-1\r\n:1\r\n*2\r\n+@fast\r\n+@transaction\r\n*0\r\n"
        b"*1\r\n*6\r\n$5\r\nflags\r\n*1\r\n+RO\r\n"
        b"$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n"
        b"$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n"
        b"*6\r\n$7\r\nlastkey\r\n:-1\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n"
    )


def test_in_resp3_flags_are_sets_and_docs_are_maps(session: RecordedSession) -> None:
    session.do("HELLO", "3")
    assert b"~1\r\n+fast\r\n" in session.do("COMMAND", "INFO", "ping")
    assert session.do("COMMAND", "DOCS", "lolwut").startswith(b"%1\r\n$6\r\nlolwut\r\n%4\r\n$7\r\nsummary\r\n")


def test_a_subcommand_is_found_by_its_full_name(session: RecordedSession) -> None:
    assert session.do("COMMAND", "INFO", "Client|SetName").startswith(b"*1\r\n*10\r\n$14\r\nclient|setname\r\n")


def test_docs_leave_out_what_does_not_exist(session: RecordedSession) -> None:
    assert session.do("COMMAND", "DOCS", "nosuch") == b"*0\r\n"


def test_docs_write_tokens_in_capitals_and_names_in_small_letters() -> None:
    one = declared()
    one.arguments = (Arg("COUNT", "integer", token="count"),)
    assert b"$4\r\nname\r\n$5\r\ncount\r\n$4\r\ntype\r\n$7\r\ninteger\r\n$5\r\ntoken\r\n$5\r\nCOUNT\r\n" in encode(
        docs_of(one), 2
    )


@pytest.mark.parametrize("one", ALL_COMMANDS, ids=NAMES)
def test_every_command_can_be_told_of(one: Command) -> None:
    for protocol in (2, 3):
        assert encode(info_of(one), protocol)
        assert encode(docs_of(one), protocol)
    assert one.summary and one.group and one.since
    assert ("fast" in categories_of(one)) != ("slow" in categories_of(one))
    assert one.categories <= set(CATEGORIES)


# -- LIST


def test_list_names_subcommands_too(session: RecordedSession) -> None:
    assert session.do("COMMAND", "LIST").startswith(b"*%d\r\n" % len(ALL_COMMANDS))


@pytest.mark.parametrize(
    ("by", "value", "expected"),
    [
        ("PATTERN", "CLIENT|ID", {b"client|id"}),
        ("pattern", "nosuch*", set()),
        ("ACLCAT", "Transaction", {b"multi", b"exec", b"discard", b"watch", b"unwatch"}),
        ("ACLCAT", "nosuch", set()),
        ("MODULE", "any", set()),
    ],
)
def test_list_can_be_filtered(session: RecordedSession, by: str, value: str, expected: set[bytes]) -> None:
    lines = session.do("COMMAND", "LIST", "FILTERBY", by, value).split(b"\r\n")
    assert set(lines[2::2]) - {b""} == expected


@pytest.mark.parametrize("words", [("x",), ("FILTERBY",), ("FILTERBY", "x", "y"), ("FILTERBY", "MODULE", "x", "y")])
def test_list_refuses_other_filters(session: RecordedSession, words: tuple[str, ...]) -> None:
    assert session.do("COMMAND", "LIST", *words) == b"-ERR syntax error\r\n"


# -- GETKEYS


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (("nosuch", "x"), b"Invalid command specified"),
        (("client", "nosuch"), b"Invalid command specified"),
        (("ping", "x"), b"The command has no key arguments"),
        (("spublish", "a", "b"), b"The command has no key arguments"),
        (("memory", "usage"), b"Invalid number of arguments specified for command"),
    ],
)
def test_getkeys_says_why_there_are_none(session: RecordedSession, request_: tuple[str, ...], error: bytes) -> None:
    assert session.do("COMMAND", "GETKEYS", *request_) == b"-ERR %b\r\n" % error


def test_getkeys_finds_keys_and_their_flags(session: RecordedSession) -> None:
    assert session.do("COMMAND", "GETKEYS", "WATCH", "a", "b") == b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"
    assert session.do("COMMAND", "GETKEYSANDFLAGS", "memory", "usage", "k", "x") == (
        b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n+RO\r\n"
    )


@pytest.mark.parametrize(
    ("request_", "flags"),
    [
        ("SET k v", "OW update"),
        ("SET k v NX get", "RW access update"),
        ("BITFIELD k GET u8 0 overflow sat get i4 4", "RO access"),
        ("BITFIELD k GET u8 0 SET u8 0 1", "RW access update"),
        ("BITFIELD k INCRBY u8 0 1", "RW access update"),
        ("BITFIELD k GET u8", "RW access update"),
    ],
)
def test_what_is_done_with_a_key_may_depend_on_the_arguments(
    session: RecordedSession, request_: str, flags: str
) -> None:
    said = session.do("COMMAND", "GETKEYSANDFLAGS", *request_.split())
    words = [b"+%b\r\n" % flag.encode() for flag in flags.split()]
    assert said == b"*1\r\n*2\r\n$1\r\nk\r\n*%d\r\n" % len(words) + b"".join(words)


def spec(begin: tuple[object, ...], find: tuple[object, ...], *flags: str) -> KeySpec:
    return KeySpec(flags, begin, find)


def test_keys_stand_in_steps() -> None:
    pairs = (spec(("index", 1), ("range", -1, 2, 0)),)
    assert found(pairs, b"mset", b"a", b"1", b"b", b"2") == [b"a", b"b"]


def test_keys_end_where_a_part_of_the_rest_ends() -> None:
    halves = (spec(("keyword", "STREAMS", 1), ("range", -1, 1, 2)),)
    assert found(halves, b"xread", b"streams", b"a", b"b", b"0", b"0") == [b"a", b"b"]


def test_keys_are_counted_by_an_argument() -> None:
    numbered = (spec(("index", 1), ("keynum", 0, 1, 1)),)
    assert found(numbered, b"lmpop", b"2", b"a", b"b", b"LEFT") == [b"a", b"b"]
    assert found(numbered, b"lmpop", b"x", b"a") is None
    assert found(numbered, b"lmpop", b"9", b"a") is None
    assert found(numbered, b"lmpop") is None


def test_keys_after_a_word_that_is_not_said_are_none() -> None:
    optional = (spec(("index", 1), ("range", 0, 1, 0)), spec(("keyword", "STORE", 2), ("range", 0, 1, 0)))
    assert found(optional, b"sort", b"a") == [b"a"]
    assert found(optional, b"sort", b"a", b"store", b"b") == [b"a", b"b"]


def test_keys_after_a_word_sought_from_the_end() -> None:
    last = (spec(("keyword", "KEYS", -2), ("range", -1, 1, 0)),)
    assert found(last, b"migrate", b"x", b"keys", b"a", b"b") == [b"a", b"b"]


def test_what_a_spec_cannot_tell_is_not_told() -> None:
    assert found((spec(("unknown",), ("unknown",)),), b"x", b"a") is None
    assert found((spec(("index", 1), ("range", 0, 1, 0), "INCOMPLETE"),), b"x", b"a") is None


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ((), [0, 0, 0, False]),
        ((spec(("index", 1), ("range", -1, 2, 0)),), [1, -1, 2, False]),
        ((spec(("index", 2), ("range", 1, 1, 0)),), [2, 3, 1, False]),
        ((spec(("index", 1), ("range", 0, 1, 0)), spec(("index", 2), ("range", 0, 1, 0))), [1, 2, 1, False]),
        ((spec(("index", 1), ("range", 0, 1, 0)), spec(("index", 3), ("range", 0, 1, 0))), [1, 1, 1, True]),
        ((spec(("index", 1), ("keynum", 0, 1, 1)),), [0, 0, 0, True]),
        ((spec(("index", 1), ("range", 0, 1, 0), "INCOMPLETE"),), [1, 1, 1, True]),
    ],
)
def test_old_clients_get_one_range_of_keys(specs: tuple[KeySpec, ...], expected: list[int | bool]) -> None:
    info = info_of(declared(*specs))
    assert [*info[3:6], b"movablekeys" in info[2]] == expected


# -- the reference


def test_tables_name_every_command_that_can_be_called_once() -> None:
    text = tables()
    for one in ALL_COMMANDS:
        row = f"| `{one.name.decode().replace('|', ' ').upper()}`"
        assert text.count(f"{row} ") == (one.handler is not None)


def test_tables_mark_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    one = declared()
    one.handler = lambda session, args: None
    one.ours = True
    monkeypatch.setattr(TABLE, "commands", {b"test": one})
    assert tables() == (
        "## Generic\n\n| command | what it does | since |\n|---|---|---|\n| `TEST` **(extension)** | A test | 1.0.0 |\n"
    )
