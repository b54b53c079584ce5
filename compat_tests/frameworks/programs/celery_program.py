"""Celery as its documentation has it: tasks, and a client that tries canvas, retries, results and remote control."""

import os
import sys
import threading
import time

import load
from celery import Celery, chain, chord, group

import rlite_pubsub.integrations.celery  # noqa: F401  (only where the URL begins with rlite:)

URL = os.environ["STORE_URL"]

app = Celery("celery_program", broker=URL, backend=URL)
app.conf.update(
    broker_transport_options={"visibility_timeout": 2, "unacked_restore_interval": 1, "unacked_restore_throttle": 1},
    beat_schedule={"tick": {"task": "celery_program.tick", "schedule": 0.2}},
    broker_connection_retry_on_startup=True,
    task_send_sent_event=True,
    result_backend_always_retry=True,  # otherwise who asks for a result while the server goes is told so
)
HERE = os.getcwd()


@app.task
def add(a: int, b: int) -> int:
    return a + b


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def fail() -> None:
    raise ValueError("on purpose")


@app.task(bind=True, max_retries=3)
def flaky(self) -> int:
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def tick() -> None:
    print("tick", flush=True)


@app.task(acks_late=True)
def late(name: str) -> str:
    """The first who does it is killed meanwhile."""
    if not os.path.exists(name):
        open(name, "w").close()
        print("late begins", flush=True)
        time.sleep(3600)
    return "done by another"


@app.task(acks_late=True, ignore_result=True)
def numbered(number: int) -> None:
    load.do(number)


def canvas() -> None:
    assert chain(add.s(1, 2), add.s(3))().get(timeout=60) == 6
    assert group(add.s(i, i) for i in range(10))().get(timeout=60) == [2 * i for i in range(10)]
    assert chord([add.s(i, i) for i in range(10)])(total.s()).get(timeout=60) == 90
    assert chain(group(add.s(i, 1) for i in range(3)), total.s(), add.s(4))().get(timeout=60) == 10
    assert flaky.delay().get(timeout=60) == 2
    try:
        fail.delay().get(timeout=60)
    except ValueError as failure:
        assert str(failure) == "on purpose"
    else:
        raise AssertionError("no failure")
    broken = chord([add.s(1, 1), fail.s()])(total.s())
    try:
        broken.get(timeout=60)
    except Exception as failure:
        assert "on purpose" in repr(failure), repr(failure)
    else:
        raise AssertionError("no failure of the chord")
    before = time.time()
    assert add.apply_async((1, 1), countdown=0.5).get(timeout=60) == 2
    assert time.time() - before >= 0.5


def control() -> None:
    replies = app.control.ping(timeout=5, limit=1)
    assert [reply["ok"] for answer in replies for reply in answer.values()] == ["pong"], replies
    (name,) = replies[0]
    inspect = app.control.inspect([name], timeout=5, limit=1)
    assert "celery_program.add" in inspect.registered()[name]
    later = add.apply_async((1, 1), countdown=3600)
    until(lambda: [task["request"]["id"] for task in inspect.scheduled()[name]] == [later.id])
    later.revoke()
    until(lambda: inspect.revoked()[name] == [later.id])
    assert later.state in ("PENDING", "REVOKED")
    with app.connection() as connection:
        receiver = app.events.Receiver(connection, handlers={"task-succeeded": lambda _: seen.set()})
        seen = threading.Event()

        def send() -> None:
            while not seen.wait(0.2):
                add.delay(1, 1)
            receiver.should_stop = True

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        receiver.capture(timeout=60)
        sending.join()


def until(condition) -> None:
    deadline = time.time() + 60
    while not condition():
        assert time.time() < deadline, condition
        time.sleep(0.05)


def killed() -> None:
    """Told when to begin: the worker is killed in the middle of it."""
    print("result:", late.delay("begun").get(timeout=120), flush=True)


def outlive() -> None:
    """The server is killed in the middle of it. Nobody reads the queue `later` before that; a worker is there all the
    time for the others."""
    results = [add.apply_async((number, 1), queue="later") for number in range(100)]
    assert add.delay(1, 1).get(timeout=60) == 2
    print("sent", flush=True)
    assert [result.get(timeout=120) for result in results] == [number + 1 for number in range(100)]
    assert add.apply_async((2, 1), retry=True).get(timeout=120) == 3


def offer() -> None:
    load.offer(numbered.delay)


if __name__ == "__main__":
    {"canvas": canvas, "control": control, "killed": killed, "outlive": outlive, "offer": offer}[sys.argv[1]]()
    print("done", flush=True)
