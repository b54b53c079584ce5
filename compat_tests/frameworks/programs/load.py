"""Numbered jobs for a test that kills workers and the server meanwhile: who offers them writes down which were
acknowledged, who does them which are done.

A number is offered once. Where that fails, nobody knows what became of it, and the next number's turn has come.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator

AHEAD = 20
"""So many are acknowledged and not done, at any time: who is killed has something to lose."""
A_JOB_S = 0.02


def do(number: int) -> None:
    time.sleep(A_JOB_S)
    note("done", number)


async def do_async(number: int) -> None:
    await asyncio.sleep(A_JOB_S)
    note("done", number)


def note(file: str, number: int) -> None:
    """In one write, which is there whole or not at all."""
    with open(file, "ab", buffering=0) as notes:
        notes.write(b"%d\n" % number)


def offer(enqueue: Callable[[int], object]) -> None:
    for number in _numbers():
        try:
            enqueue(number)
        except Exception as failure:  # each library has its own for a server that is not there; the test counts them
            _refused(number, failure)
        else:
            note("acknowledged", number)


async def offer_async(enqueue: Callable[[int], Awaitable[object]]) -> None:
    for number in _numbers():
        try:
            await enqueue(number)
        except Exception as failure:
            _refused(number, failure)
        else:
            note("acknowledged", number)


def _numbers() -> Iterator[int]:
    """Until the test has seen enough."""
    number = 0
    while not os.path.exists("enough"):
        if _count("acknowledged") - _count("done") < AHEAD:
            yield number
            number += 1
        else:
            time.sleep(0.005)


def _count(file: str) -> int:
    try:
        with open(file, "rb") as notes:
            return notes.read().count(b"\n")
    except FileNotFoundError:
        return 0


def _refused(number: int, failure: Exception) -> None:
    print("refused", number, repr(failure), flush=True)
    time.sleep(0.1)
