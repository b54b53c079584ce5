"""The file of users: what is in it is loaded, refused and written as redis-server does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from compat_tests.acl_rules import Rules, settled
from compat_tests.servers import REDIS_SERVER, SocketServer, start_ours, start_redis

FILES = 60
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
NAME = "users.acl"
_COMMANDS = [b"get", b"set", b"xadd", b"config|get", b"publish", b"select", b"zadd", b"eval", b"client"]
_CATEGORIES = [b"read", b"write", b"pubsub", b"all", b"dangerous", b"stream"]
_ENDS = re.compile(rb"(?:\$\d+)?\r?\n")
_BREAKING = re.compile(rb"[\n\0]")
_LINES = [b"", b"  ", b"user", b"nobody on", b"# a comment", b"user al ice on", b"user  two on",
          b"user default on nopass", b"user tab\tbed on", b"User alice on", b"user alice on\r",
          b"user quoted \"on\""]  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[SocketServer, Path]]]:
    if REDIS_SERVER is None:
        pytest.skip("no redis-server: nothing is compared with the real one")
    started = []
    for start in (start_ours, start_redis):
        folder = tmp_path_factory.mktemp("users")
        (folder / NAME).write_bytes(b"")
        started.append((start(folder, "--aclfile", NAME), folder))
    yield started
    for server, _ in started:
        server.stop()


def content(random: Random, rules: Rules) -> bytes:
    """A file with a few users and, now and then, what makes no sense."""
    lines = []
    for number in range(random.randrange(5)):
        name = random.choice((b"alice", b"carol%d" % number, b"dora%d" % number))
        said = [rules.of_selector() for _ in range(random.randrange(6))]
        if random.random() < 0.1:
            said.append(rules.rule())
        said = [rule for rule in said if not _BREAKING.search(rule) and (b"(" not in rule or rule.endswith(b")"))]
        lines.append(b" ".join([b"user", name, *said]))
    if random.random() < 0.2:
        lines.insert(random.randrange(len(lines) + 1), random.choice(_LINES))
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_file_is_loaded_and_saved_as_by_redis(servers: list[tuple[SocketServer, Path]], seed: int) -> None:
    random, rules = Random(seed), Rules(seed, _COMMANDS, _CATEGORIES)
    for _ in range(FILES):
        text = content(random, rules)
        told = []
        for server, folder in servers:
            (folder / NAME).write_bytes(text)
            with server.wire() as wire:
                answers = [wire.ask(b"ACL", b"LOAD"), wire.ask(b"ACL", b"LIST"), wire.ask(b"ACL", b"SAVE")]
            answers.append((folder / NAME).read_bytes())
            told.append([settled(_ENDS.sub(b" ", answer)) for answer in answers])
        assert told[0] == told[1], text
