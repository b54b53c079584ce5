"""Huey: results, retries, delays, pipelines, locks and periodic tasks."""

import sys

import load
from huey import RedisHuey, crontab
from huey.exceptions import TaskException
from place import client

huey = RedisHuey("program", connection_pool=client().connection_pool)


@huey.task()
def add(a: int, b: int) -> int:
    return a + b


@huey.task(retries=2, context=True)
def flaky(task=None) -> int:
    if task.retries > 1:
        raise RuntimeError("once")
    return task.retries


@huey.task()
def fail() -> None:
    raise ValueError("on purpose")


@huey.task()
@huey.lock_task("one")
def locked() -> str:
    return "had the lock"


@huey.periodic_task(crontab(minute="*"))
def minutely() -> None:
    pass


@huey.task()
def slow() -> None:
    import time

    print("slow begins", flush=True)
    time.sleep(3600)


@huey.task()
def numbered(number: int) -> None:
    load.do(number)


def tasks() -> None:
    assert add(1, 2).get(blocking=True, timeout=60) == 3
    mended = flaky()
    while True:  # what went wrong is a result, too, until it is tried again
        try:
            assert mended.get(blocking=True, timeout=60) == 1
            break
        except TaskException:
            mended.reset()
    try:
        fail().get(blocking=True, timeout=60)
    except TaskException as failure:
        assert "on purpose" in str(failure)
    else:
        raise AssertionError("no failure")
    assert add.schedule((2, 2), delay=1).get(blocking=True, timeout=60) == 4
    assert locked().get(blocking=True, timeout=60) == "had the lock"
    results = huey.enqueue(add.s(1, 1).then(add, 3))
    assert results.get(blocking=True, timeout=60) == [2, 5]
    assert add.map([(number, 1) for number in range(10)]).get(blocking=True, timeout=60) == list(range(1, 11))
    revoked = add.schedule((1, 1), delay=3600)
    revoked.revoke()
    assert revoked.is_revoked()


def begin() -> None:
    slow()


def go_on() -> None:
    assert add(4, 4).get(blocking=True, timeout=120) == 8


def offer() -> None:
    load.offer(numbered)


if __name__ == "__main__":
    import huey_program  # under this name the worker knows the tasks

    getattr(huey_program, sys.argv[1].replace(" ", "_"))()
    print("done", flush=True)
