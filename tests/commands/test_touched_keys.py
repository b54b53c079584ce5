"""Whatever key a command touches, its declaration names: rights, COMMAND GETKEYS, tracking and slots go by that.

The keyspace itself says which keys were looked up: its caches, empty before each request, hold every name that was
looked for, found or not."""

from __future__ import annotations

from random import Random

import declared
import pytest
from recorded_session import House
from target_commands import _KEYS

from rlite_pubsub.engine.access.permission import keys_named
from rlite_pubsub.engine.key_places import key_places, keys_of
from rlite_pubsub.engine.table import TABLE, Command
from rlite_pubsub.protocol.errors import CommandError

FORMS = 100
FITTING = {
    "bitmap": [b"bits"], "generic": [b"list", b"hash", b"topic", b"sorted"], "geo": [b"geo"], "hash": [b"hash"],
    "hyperloglog": [b"hll"], "list": [b"list"], "set": [b"set", b"integers"], "sorted-set": [b"sorted"],
    "stream": [b"topic", b"queue"], "string": [b"string", b"number"],
}  # fmt: skip
"""Keys of the type that a command of this group is for."""
ALL_KEYS = frozenset(
    b"scan keys randomkey flushall flushdb swapdb dbsize debug|digest debug|reload".split()
)
"""Redis's own, which are for all keys by their meaning: they need a right of their own, no pattern of keys."""
OF_OTHERS = frozenset(b"eval evalsha eval_ro evalsha_ro fcall fcall_ro exec".split())
"""Each command that they execute is checked by itself."""
ELSEWHERE = frozenset(
    b"link|join shutdown sync psync replicaof slaveof failover monitor migrate quit topic.export".split()
)
"""What would end the house, or needs a socket."""
BY_HAND = [
    b"BITOP AND new string bits", b"SETBIT bits 7 1", b"ZRANGE sorted 0 -1", b"ZRANGESTORE new sorted 0 -1",
    b"TOPIC.STAGE app 0 0 7 0 topic 0 ", b"TOPIC.DEFER topic 99999999999999 f v", b"TOPIC.MARKS topic - + 1",
    b"TOPIC.GROUP topic g DEADLETTER new MAXDELIVERIES 1", b"XDELEX topic DELREF IDS 1 1-1",
    b"XACKDEL topic g DELREF IDS 1 1-1", b"XREADGROUP GROUP STREAMS list STREAMS topic >",
    b"XREAD COUNT 1 STREAMS topic queue 0 0", b"MIGRATE h 1 string 0 1 AUTH keys", b"GEORADIUS geo 1 1 1 m STORE new",
    b"GEORADIUS geo 1 1 1 m STOREDIST new STORE other", b"LMPOP 2 list new LEFT", b"BLMPOP 0.01 2 list new LEFT",
    b"SET string v GET", b"BITFIELD bits GET u8 0", b"PFMERGE hll", b"QUEUE.LIST queue", b"QUEUE.POP queue",
    b"XGROUP CREATE topic h 0 MKSTREAM", b"COPY string new REPLACE", b"LCS string number",
]  # fmt: skip
"""What chance rarely makes."""
PATTERNS = frozenset((b"sort", b"sort_ro"))
"""BY and GET need a right to all keys, as in Redis: tests/commands/test_acl.py."""
LISTED = frozenset((b"queue.list",))
"""It lists the queues that its user may read: tests/commands/test_acl.py."""
STAGED = frozenset((b"topic.commit",))
"""It looks at the topics of what was staged: tests/commands/test_topic_stage.py."""
COMMANDS = declared.commands(ALL_KEYS | OF_OTHERS | ELSEWHERE | PATTERNS | LISTED | STAGED)


def fill(house: House) -> None:
    session = house.session()
    session.do("FLUSHALL")
    for words in _KEYS:
        if str(words[1]).startswith("big-"):
            continue
        session.do(*[word if isinstance(word, bytes | str) else str(word) for word in words])
    session.close_now()


def request_of(chance: Random, command: Command) -> list[bytes]:
    """A request in which most keys are of the command's type."""
    request = declared.request_of(chance, command)
    if not command.accepts(len(request)):
        return request
    for place, _ in key_places(command, request) or ():
        if command.group in FITTING and chance.random() < 0.7:
            request[place] = chance.choice(FITTING[command.group])
    return request


def touched(house: House, request: list[bytes]) -> set[bytes]:
    """The names that were looked up."""
    keyspace = house.engine.keyspace
    session = house.session()
    house.engine.commit()
    for part in keyspace.parts:
        part.forget()
    session.do(*request)
    names = {name for part in keyspace.parts for cache in part.caches for name in cache}
    session.close_now()
    return names


def named(command: Command, request: list[bytes]) -> set[bytes]:
    """The names that a user's rights are looked up for, and those that COMMAND GETKEYS tells: both must do. For some
    requests it tells nothing, as in Redis."""
    checked = {each.name for each in keys_named(command, request)}
    told = keys_of(command, request)
    return checked if told is None else checked & {key for key, _ in told}


@pytest.fixture(scope="module")
def common() -> House:
    """For commands that change nothing but keys."""
    return House()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name.decode())
def test_a_command_touches_the_keys_that_its_declaration_names_and_no_others(
    common: House, command: Command
) -> None:
    house = common if command.group in FITTING else House()
    fill(house)
    for number in range(FORMS if command.key_specs else FORMS // 4):
        chance = Random(f"{command.name.decode()}/{number}")
        request = request_of(chance, command)
        if not command.accepts(len(request)):
            continue
        try:
            if TABLE.resolve(request) is not command:
                continue
        except CommandError:
            continue
        found = touched(house, request)
        assert found <= named(command, request), request
        if number % 25 == 24 and command.flags & {"write"}:
            fill(house)


@pytest.mark.parametrize("words", BY_HAND, ids=lambda words: words.decode())
def test_chosen_forms_touch_the_keys_that_their_declarations_name(house: House, words: bytes) -> None:
    fill(house)
    request = words.split(b" ")
    command = TABLE.resolve(request)
    assert touched(house, request) <= named(command, request)


def test_whatever_is_looked_for_is_noted(house: House) -> None:
    """Otherwise the tests above would prove nothing."""
    fill(house)
    assert touched(house, b"MGET string none".split()) == {b"string", b"none"}
    assert touched(house, b"SORT list BY k_*".split()) > {b"list", b"k_1"}
