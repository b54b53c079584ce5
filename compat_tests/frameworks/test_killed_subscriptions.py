"""Who listens is heard of again: the server is killed with -9 and started anew, and so is who listens.

What is told meanwhile is lost, as by Redis, but where a framework keeps it in a stream.
"""

from __future__ import annotations

import re

import pytest
from patience import until

from compat_tests.frameworks.stage import Program, Server, Stage
from compat_tests.frameworks.test_node_frameworks import NODE, needs_node

PYTHON = ["core", "pubsub", "socketio", "broadcaster", "broadcaster_over_streams", "faststream", "flask_sse"]
ON_NODE = ["socketIo", "socketIoSharded", "socketIoStreams", "graphql"]
KEEPS = {"socketIoStreams"}
"""What was told is heard, though the server was killed between."""
DOES_NOT_COME_BACK = {"broadcaster", "broadcaster_over_streams"}
"""Its listener ends with the connection, silently: the process has to be started again."""


def start(stage: Stage, kind: str, part: str) -> Program:
    if kind in ON_NODE:
        return stage.start(NODE, stage.program("subscriptions.js"), kind, part)
    return stage.python("subscriptions_program.py", kind, part)


def hear(stage: Stage, kind: str) -> Program:
    started = start(stage, kind, "hear")
    started.wait_for("hears")
    return started


def numbers(program: Program, what: str) -> list[int]:
    return [int(number) for number in re.findall(rf"^{what} (\d+)$", program.printed(), re.M)]


def until_new_are_heard(stage: Stage, teller: Program, hearer: Program) -> None:
    """What is told from here on."""
    told = max(numbers(teller, "told"), default=-1)
    try:
        until(lambda: max(numbers(hearer, "heard"), default=-1) > told + 2, "what was told")
    except AssertionError as failure:
        raise AssertionError(f"{failure}\n{stage.told()}") from None


@pytest.mark.parametrize("kind", [*PYTHON, *(pytest.param(kind, marks=needs_node) for kind in ON_NODE)])
def test_subscriptions_are_there_again(server: Server, stage: Stage, kind: str) -> None:
    hearer = hear(stage, kind)
    teller = start(stage, kind, "tell")
    until_new_are_heard(stage, teller, hearer)
    server.kill()
    server.start()
    if kind in DOES_NOT_COME_BACK:
        hearer.kill()
        hearer = hear(stage, kind)
    until_new_are_heard(stage, teller, hearer)
    if kind in KEEPS:
        first = min(numbers(hearer, "heard"))
        until(lambda: {*numbers(hearer, "heard")} >= {n for n in numbers(teller, "told")[:-20] if n >= first}, "all")
    hearer.kill()
    until_new_are_heard(stage, teller, hear(stage, kind))
    (stage.folder / "enough").touch()
    teller.succeed()
