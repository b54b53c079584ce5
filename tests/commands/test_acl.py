"""ACL: users, what they may do, and what becomes of their connections."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.access.acl_vocabulary import vocabulary
from rlite_pubsub.engine.access.categories import CATEGORIES
from rlite_pubsub.engine.access.selector import Selector
from rlite_pubsub.engine.access.user import User

OK = b"+OK\r\n"
NO_KEY = b"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
NO_CHANNEL = b"-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def no_command(name: bytes) -> bytes:
    return b"-NOPERM this user has no permissions to run the '%b' command\r\n" % name


def user(house: House, *rules: str, name: str = "alice") -> RecordedSession:
    """A connection of a user with these rules."""
    admin = house.session()
    assert admin.do("ACL", "SETUSER", name, "on", "nopass", *rules) == OK
    session = house.session()
    assert session.do("AUTH", name, "") == OK
    return session


def test_at_first_there_is_one_user_who_may_do_everything(session: RecordedSession) -> None:
    assert session.limits is None
    assert session.do("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"
    assert session.do("ACL", "USERS") == b"*1\r\n$7\r\ndefault\r\n"
    assert session.do("ACL", "LIST") == b"*1\r\n$34\r\nuser default on nopass ~* &* +@all\r\n"
    assert session.do("ACL", "GETUSER", "nobody") == b"$-1\r\n"
    assert session.do("ACL", "DELUSER", "nobody") == b":0\r\n"
    assert session.do("ACL", "DELUSER", "a", "default") == b"-ERR The 'default' user cannot be removed\r\n"
    assert session.do("ACL", "DRYRUN", "default", "ping") == OK
    session.do("HELLO", "3")
    assert session.do("ACL", "GETUSER", "default") == (
        b"%6\r\n$5\r\nflags\r\n~2\r\n$2\r\non\r\n$6\r\nnopass\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n$5\r\n+@all\r\n"
        b"$4\r\nkeys\r\n$2\r\n~*\r\n$8\r\nchannels\r\n$2\r\n&*\r\n$9\r\nselectors\r\n*0\r\n"
    )


def test_a_new_user_may_do_nothing_and_not_log_in(session: RecordedSession) -> None:
    assert session.do("ACL", "SETUSER", "bob") == OK
    assert bulk(b"user bob off resetchannels -@all") in session.do("ACL", "LIST")
    assert session.do("AUTH", "bob", "").startswith(b"-WRONGPASS")


def test_passwords_come_and_go(session: RecordedSession) -> None:
    known = hashlib.sha256(b"one").hexdigest()
    assert session.do("ACL", "SETUSER", "default", ">one", ">two", "<two", "~*", "+@all", "") == OK
    assert b"user default on #%b ~* &* +@all" % known.encode() in session.do("ACL", "LIST")
    other = RecordedSession(session.engine)
    assert other.do("PING").startswith(b"-NOAUTH")
    assert other.do("AUTH", "two").startswith(b"-WRONGPASS")
    assert other.do("AUTH", "one") == OK
    assert session.do("ACL", "SETUSER", "default", "!" + known, "nopass") == OK
    assert RecordedSession(session.engine).do("PING") == b"+PONG\r\n"


def test_a_user_switched_off_lets_nobody_in_and_throws_nobody_out(house: House, session: RecordedSession) -> None:
    session.do("ACL", "SETUSER", "default", "off")
    other = house.session()
    assert other.do("PING").startswith(b"-NOAUTH")
    assert other.do("AUTH", "default", "x").startswith(b"-WRONGPASS")
    assert session.do("PING") == b"+PONG\r\n"
    session.do("ACL", "SETUSER", "default", "on")
    assert other.do("PING") == b"+PONG\r\n"
    session.do("ACL", "SETUSER", "default", ">secret")
    assert other.do("PING").startswith(b"-NOAUTH")
    assert session.do("PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("<none", b"The password you are trying to remove from the user does not exist"),
        ("#xyz", b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"),
        ("+nothing", b"Unknown command or category name in ACL"),
        ("-@nothing", b"Unknown command or category name in ACL"),
        ("-select|0", b"Unknown command or category name in ACL"),
        ("+config|get|x", b"Allowing first-arg of a subcommand is not supported"),
        ("+select|", b"Syntax error"),
        ("(%%)", b"Syntax error"),
        ("(%~a)", b"Syntax error"),
        ("nonsense", b"Syntax error"),
        ("(on)", b"Syntax error"),
        (
            "~foo",
            b"Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. "
            b"Try 'resetkeys' to start with an empty list of patterns",
        ),
        (
            "&foo",
            b"Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any "
            b"effect. Try 'resetchannels' to start with an empty list of channels",
        ),
    ],
)
def test_a_refused_rule_leaves_nothing_behind(session: RecordedSession, rule: str, reason: bytes) -> None:
    before = session.do("ACL", "LIST")
    expected = b"-ERR Error in ACL SETUSER modifier '%b': %b\r\n" % (rule.encode(), reason)
    assert session.do("ACL", "SETUSER", "default", ">secret", rule) == expected
    assert session.do("ACL", "LIST") == before


def test_names_with_blanks_are_refused(session: RecordedSession) -> None:
    assert session.do("ACL", "SETUSER", "b ob") == b"-ERR Usernames can't contain spaces or null characters\r\n"
    assert session.do("ACL", "DRYRUN", "bob", "ping") == b"-ERR User 'bob' not found\r\n"


def test_rules_may_name_commands_of_redis_that_are_not_here(session: RecordedSession) -> None:
    assert session.do("ACL", "SETUSER", "bob", "+zadd", "-@sortedset", "+@geo", "-eval", "+function|load") == OK
    assert b"-@all +@geo +function|load" in session.do("ACL", "LIST")


def test_topics_and_queues_are_among_the_commands_of_streams(house: House) -> None:
    alice = user(house, "~orders", "+@stream", "-@dangerous")
    assert b"NOPERM" not in alice.do("TOPIC.CREATE", "orders") + alice.do("QUEUE.PUSH", "orders", "x")
    assert alice.do("TOPIC.CREATE", "secret") == NO_KEY
    assert alice.do("SUBSCRIBER.LIST") == no_command(b"subscriber.list")


# -- what a user may do


def test_a_user_may_do_what_its_rules_allow(house: House) -> None:
    alice = user(house, "~a:*", "%R~b:*", "&news.*", "+@read", "+@pubsub", "+set", "-mget", "+config|get")
    assert alice.do("SET", "a:1", "v") == OK
    assert alice.do("GET", "a:1") == bulk(b"v")
    assert alice.do("GET", "b:1") == b"$-1\r\n"
    assert alice.do("SET", "b:1", "v") == NO_KEY
    assert alice.do("GET", "c:1") == NO_KEY
    assert alice.do("MGET", "a:1") == no_command(b"mget")
    assert alice.do("FLUSHALL") == no_command(b"flushall")
    assert alice.do("CONFIG", "GET", "port").startswith(b"*2")
    assert alice.do("CONFIG", "SET", "port", "1") == no_command(b"config|set")
    assert alice.do("PUBLISH", "news.a", "x") == b":0\r\n"
    assert alice.do("PUBLISH", "chat", "x") == NO_CHANNEL
    assert alice.do("SUBSCRIBE", "news.a", "chat") == NO_CHANNEL
    assert alice.do("PSUBSCRIBE", "news.a*") == NO_CHANNEL
    assert alice.do("PSUBSCRIBE", "news.*").startswith(b"*3")


def test_whatever_one_selector_allows_the_user_may(house: House) -> None:
    alice = user(house, "~a", "+get", "(~b +set)", "(+select|1)")
    assert alice.do("GET", "a") == b"$-1\r\n"
    assert alice.do("SET", "b", "v") == OK
    assert alice.do("GET", "b") == NO_KEY
    assert alice.do("SET", "a", "v") == NO_KEY
    assert alice.do("SELECT", "1") == OK
    assert alice.do("SELECT", "0") == no_command(b"select")


@pytest.mark.parametrize(
    ("words", "is_read", "is_written"),
    [
        ("SET k v", False, True),
        ("SET k v EX 5 GET", True, True),
        ("XADD k * f v", False, True),
        ("XREAD COUNT 1 STREAMS k 0", True, False),
        ("TOPIC.SUBSCRIBE k 0", True, False),
        ("TOPIC.INFO k", True, False),
        ("TOPIC.CREATE k", False, True),
        ("QUEUE.PUSH k v", False, True),
        ("QUEUE.PEEK k s", True, False),
        ("RENAME k k", True, True),
    ],
)
def test_a_key_needs_the_rights_for_what_is_done_with_it(
    house: House, words: str, is_read: bool, is_written: bool
) -> None:
    admin = house.session()
    for letter, may in (("R", not is_written), ("W", not is_read)):
        assert admin.do("ACL", "SETUSER", letter, "+@all", f"%{letter}~k") == OK
        reply = admin.do("ACL", "DRYRUN", letter, *words.split())
        assert reply == (OK if may else bulk(b"This user has no permissions to access the 'k' key"))


@pytest.mark.parametrize(
    "words",
    [
        "KEYS {}",
        "AUTH KEYS KEYS {}",
        "AUTH2 KEYS word KEYS {}",
        "AUTH2 user KEYS KEYS open {}",
        "COPY auth keys replace keys {}",
    ],
)
def test_a_password_named_keys_is_no_key_of_migrate(house: House, words: str) -> None:
    admin = house.session()
    assert admin.do("ACL", "SETUSER", "bob", "+@all", "~open") == OK
    for key, reply in (("open", OK), ("secret", bulk(b"This user has no permissions to access the 'secret' key"))):
        request = ["MIGRATE", "host", "1", "", "0", "5", *words.format(key).split()]
        assert admin.do("ACL", "DRYRUN", "bob", *request) == reply


@pytest.mark.parametrize(
    "words",
    [
        "XREADGROUP GROUP g c STREAMS secret >",
        "XREADGROUP COUNT 1 GROUP g STREAMS STREAMS secret >",
        "XREADGROUP COUNT 1 GROUP STREAMS STREAMS STREAMS secret >",
        "TOPIC.GROUP STREAMS g MAXDELIVERIES 3 DEADLETTER secret",
    ],
)
def test_no_word_of_a_request_hides_a_key(house: House, words: str) -> None:
    alice = user(house, "~STREAMS", "+@all")
    assert alice.do(*words.split()) == NO_KEY


def test_pfmerge_without_sources_needs_the_right_to_its_key(house: House) -> None:
    alice = user(house, "~a", "+pfmerge")
    assert alice.do("PFMERGE", "a") == OK
    assert alice.do("PFMERGE", "b") == NO_KEY


def test_queues_are_listed_for_whoever_may_read_them(house: House, session: RecordedSession) -> None:
    session.do("QUEUE.CREATE", "a")
    session.do("QUEUE.CREATE", "b")
    assert user(house, "~a", "+queue.list").do("QUEUE.LIST") == b"*1\r\n" + bulk(b"a")
    assert user(house, "~a", "%W~b", "+queue.list").do("QUEUE.LIST") == b"*1\r\n" + bulk(b"a")
    assert session.do("QUEUE.LIST") == b"*2\r\n" + bulk(b"a") + bulk(b"b")


def test_topics_are_listed_for_whoever_may_read_them(house: House, session: RecordedSession) -> None:
    session.do("XADD", "a", "*", "f", "v")
    session.do("XADD", "b", "*", "f", "v")
    assert user(house, "~a", "%W~b", "+topic.list").do("TOPIC.LIST") == b"*1\r\n" + bulk(b"a")
    assert session.do("TOPIC.LIST") == b"*2\r\n" + bulk(b"a") + bulk(b"b")


def test_no_user_of_pubsub_alone_starts_a_process_of_links(house: House) -> None:
    alice = user(house, "allchannels", "+@pubsub")
    assert alice.do("LINK", "JOIN") == no_command(b"link|join")


def test_a_durable_subscriber_is_a_channel_of_its_name(house: House) -> None:
    alice = user(house, "&durable:alice", "&news", "+@all")
    for words in ("ATTACH", "DETACH", "DELETE", "INFO"):
        assert alice.do(f"SUBSCRIBER.{words}", "bob") == NO_CHANNEL
    assert b"NOPERM" not in alice.do("SUBSCRIBER.ATTACH", "alice")


def test_whoever_may_do_everything_by_rules_is_not_looked_at_again(house: House) -> None:
    assert user(house, "allkeys", "allchannels", "allcommands").limits is None
    assert user(house, "-@all", "(~* &* +@all)").limits is None
    assert user(house, "+@all", "~*", "resetchannels", name="bob").limits is not None


def test_commands_of_login_are_everybodys(house: House) -> None:
    alice = user(house)
    assert alice.do("PING") == no_command(b"ping") == alice.do("PING")
    assert alice.do("HELLO", "2").startswith(b"*14")
    assert alice.do("RESET") == b"+RESET\r\n"
    assert alice.do("PING") == b"+PONG\r\n"


def test_a_transaction_is_looked_at_when_it_is_queued_and_when_it_is_executed(house: House) -> None:
    admin, alice = house.session(), user(house, "~a", "+@all")
    assert alice.do("MULTI") == OK
    assert alice.do("SET", "b", "1") == NO_KEY
    assert alice.do("EXEC").startswith(b"-EXECABORT")
    alice.do("MULTI")
    assert alice.do("SET", "a", "1") == alice.do("GET", "a") == b"+QUEUED\r\n"
    admin.do("ACL", "SETUSER", "alice", "-set")
    refusal = (
        b"-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "
        b"This command is no longer allowed for the following reason: "
        b"no permission to execute the command or subcommand\r\n"
    )
    assert alice.do("EXEC") == b"*2\r\n" + refusal + b"$-1\r\n"


def test_what_was_denied_is_in_the_log(house: House) -> None:
    admin, alice = house.session(), user(house, "~a", "+@all", "-get")
    alice.do("GET", "a")
    alice.do("SET", "b", "1")
    alice.do("PUBLISH", "news", "x")
    entries = list(house.engine.acl_log.entries)
    assert [(entry.reason, entry.object, entry.username) for entry in entries] == [
        (b"channel", b"news", b"alice"),
        (b"key", b"b", b"alice"),
        (b"command", b"get", b"alice"),
    ]
    admin.do("CONFIG", "SET", "acllog-max-len", "1")
    alice.do("MULTI")
    alice.do("SET", "b", "1")
    assert [entry.context for entry in house.engine.acl_log.entries] == [b"multi"]


# -- connections


def test_a_deleted_user_takes_its_connections_with_it(house: House) -> None:
    admin, alice = house.session(), user(house, "+@all")
    assert admin.do("ACL", "DELUSER", "alice", "nobody") == b":1\r\n"
    assert alice.gone and not admin.gone
    itself = user(house, "+@all")
    assert itself.do("ACL", "DELUSER", "alice") == b":1\r\n"
    assert itself.closing


@pytest.mark.parametrize(
    ("words", "rules", "goes"),
    [
        ("SUBSCRIBE news", "resetchannels", True),
        ("SUBSCRIBE news", "resetchannels &n*", False),
        ("SSUBSCRIBE news", "resetchannels &x", True),
        ("PSUBSCRIBE news*", "resetchannels &news*", False),
        ("PSUBSCRIBE news*", "resetchannels &ne*", True),
        ("TOPIC.SUBSCRIBE news $", "resetkeys %W~news", True),
        ("TOPIC.SUBSCRIBE news $", "resetkeys %R~news", False),
        ("SUBSCRIBE news", "-@all", False),
        ("PING", "resetchannels", False),
    ],
)
def test_who_holds_what_its_user_has_lost_is_closed(house: House, words: str, rules: str, goes: bool) -> None:
    admin, alice = house.session(), user(house, "~*", "&*", "+@all")
    assert not alice.do(*words.split()).startswith(b"-")
    assert admin.do("ACL", "SETUSER", "alice", *rules.split()) == OK
    assert alice.gone is goes


def test_what_was_held_as_another_user_is_kept_where_no_channel_is_lost(house: House) -> None:
    """As in Redis: the rules of a user without any channel can't rob it of one."""
    admin, alice = house.session(), user(house, "&*", "+@all")
    admin.do("ACL", "SETUSER", "bob", "on", "nopass", "+@all")
    alice.do("HELLO", "3")
    alice.do("SUBSCRIBE", "news")
    assert alice.do("AUTH", "bob", "x") == OK
    assert admin.do("ACL", "SETUSER", "bob", "&chat") == OK and not alice.gone
    assert admin.do("ACL", "SETUSER", "bob", "&x") == OK and alice.gone


def test_a_changed_rule_holds_for_connections_that_are_there(house: House) -> None:
    admin, alice = house.session(), user(house, "~*", "&*", "+@all")
    assert alice.do("PING") == b"+PONG\r\n"
    admin.do("ACL", "SETUSER", "alice", "-ping")
    assert alice.do("PING") == no_command(b"ping")
    admin.do("ACL", "SETUSER", "alice", "+@all")
    assert alice.do("PING") == b"+PONG\r\n" and alice.limits is None
    admin.do("ACL", "SETUSER", "default", "-ping")
    assert admin.do("PING") == no_command(b"ping") == house.session().do("PING")


def test_clients_are_killed_and_listed_by_their_user(house: House) -> None:
    admin, alice = house.session(), user(house, "+@all")
    assert b" user=alice " in admin.do("CLIENT", "LIST")
    assert admin.do("CLIENT", "KILL", "USER", "nobody") == b"-ERR No such user 'nobody'\r\n"
    assert admin.do("CLIENT", "KILL", "USER", "alice") == b":1\r\n"
    assert alice.gone


# -- files


def test_users_are_saved_to_their_file_and_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    house = House(aclfile=str(path))
    admin, bob = house.session(), user(house, "~a", "%R~b", "&c", "+@read", "-get", "(~d +set)", name="bob")
    assert admin.do("ACL", "SETUSER", "bob", ">x", ">y") == OK
    before = admin.do("ACL", "LIST")
    assert admin.do("ACL", "SAVE") == OK
    assert admin.do("ACL", "DELUSER", "bob") == b":1\r\n"
    assert admin.do("ACL", "LOAD") == OK
    assert admin.do("ACL", "LIST") == before
    assert bob.gone
    again = House(aclfile=str(path))
    again.engine.users.load()
    assert again.session().do("ACL", "LIST") == before


def test_config_rewrite_writes_users_where_they_have_no_file_of_their_own(tmp_path: Path) -> None:
    for file, expected in (("", 2), (str(tmp_path / "users.acl"), 0)):
        path = tmp_path / "redis.conf"
        path.write_text("user old on\nport 5\n")
        house = House(aclfile=file)
        house.engine.config_file = str(path)
        admin = house.session()
        admin.do("ACL", "SETUSER", "alice", "on", ">x", "~a", "+@read")
        assert admin.do("CONFIG", "REWRITE") == OK
        lines = [line for line in path.read_bytes().splitlines() if line.startswith(b"user ")]
        assert len(lines) == expected and all(bulk(line) in admin.do("ACL", "LIST") for line in lines)


def test_a_file_with_a_fault_changes_nothing_and_all_faults_are_named(tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    path.write_text("user bob on\nuser bob\n\nnobody\nuser carl +nothing %% >x\nuser dora (~a\n")
    admin = House(aclfile=str(path)).session()
    place = str(path).encode()
    assert admin.do("ACL", "LOAD") == (
        b"-ERR WARNING: Duplicate user 'bob' found on line 2. "
        b"%b:4 should start with user keyword followed by the username. "
        b"%b:5: Error in applying operation '+nothing': Unknown command or category name in ACL. %b:5: Syntax error. "
        b"%b:6: Unmatched parenthesis in selector definition."
        b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n" % ((place,) * 4)
    )
    assert admin.do("ACL", "USERS") == b"*1\r\n$7\r\ndefault\r\n"


def test_without_a_file_there_is_nothing_to_load_or_save(session: RecordedSession) -> None:
    for word in ("LOAD", "SAVE"):
        assert session.do("ACL", word).startswith(b"-ERR This Redis instance is not configured to use an ACL file.")


# -- words


def test_cat_names_categories_and_commands(session: RecordedSession) -> None:
    assert session.do("ACL", "CAT").startswith(b"*21\r\n$8\r\nkeyspace\r\n$4\r\nread\r\n")
    pubsub = session.do("ACL", "CAT", "PubSub")
    assert b"$9\r\nsubscribe\r\n" in pubsub and b"$13\r\npubsub|numsub\r\n" in pubsub and b"ping" not in pubsub
    assert session.do("ACL", "CAT", "nothing") == b"-ERR Unknown category 'nothing'\r\n"


@pytest.mark.parametrize(("bits", "length"), [("5", 2), ("4", 1), ("4096", 1024)])
def test_genpass_makes_as_many_bits_as_asked_for(session: RecordedSession, bits: str, length: int) -> None:
    assert session.do("ACL", "GENPASS", bits).startswith(b"$%d\r\n" % length)
    assert session.do("ACL", "GENPASS") != session.do("ACL", "GENPASS")


@pytest.mark.parametrize("bits", ["0", "-5", "4097"])
def test_genpass_refuses_what_is_no_number_of_bits(session: RecordedSession, bits: str) -> None:
    error = (
        b"-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
    )
    assert session.do("ACL", "GENPASS", bits) == error + b"\r\n"


def _rule() -> st.SearchStrategy[bytes]:
    categories = st.sampled_from([category.encode() for category in (*CATEGORIES, "all")])
    commands = st.sampled_from(sorted(vocabulary().words))
    signs = st.sampled_from((b"+", b"-"))
    patterns = st.sampled_from((b"a", b"b*", b"c"))
    return st.one_of(
        st.tuples(signs, st.just(b"@"), categories).map(b"".join),
        st.tuples(signs, commands).map(b"".join),
        st.sampled_from((b"+select|0", b"+select|x", b"+get|a")),
        st.tuples(st.sampled_from((b"~", b"%R~", b"%W~", b"&")), patterns).map(b"".join),
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(_rule(), max_size=12))
def test_a_user_in_words_makes_the_same_user_again(rules: list[bytes]) -> None:
    user = User(b"alice")
    for rule in rules:
        user = user.with_rule(rule, Selector())
    again = User(b"alice")
    for rule in user.line.split(b" ")[2:]:
        again = again.with_rule(rule, Selector())
    assert again.root.allowed == user.root.allowed
    assert again.line == user.line
