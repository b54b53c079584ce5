"""RQ: jobs, retries, dependencies, the scheduler of its worker and rq-scheduler."""

import os
import sys
import time
from datetime import timedelta

import load
from place import URL, client, until
from rq import Queue, Retry, Worker
from rq.job import JobStatus


def add(a: int, b: int) -> int:
    return a + b


def fail() -> None:
    raise ValueError("on purpose")


def flaky(name: str) -> str:
    if not os.path.exists(name):
        open(name, "w").close()
        raise RuntimeError("once")
    return "mended"


def slow() -> None:
    print("slow begins", flush=True)
    time.sleep(3600)


def numbered(number: int) -> None:
    load.do(number)


def work() -> None:
    Worker([Queue(connection=client())], connection=client()).work(with_scheduler=True)


def result(job):
    until(lambda: job.get_status(refresh=True) in (JobStatus.FINISHED, JobStatus.FAILED))
    return job.return_value(refresh=True)


def jobs() -> None:
    import rq_program

    queue = Queue(connection=client())
    assert result(queue.enqueue(rq_program.add, 1, 2)) == 3
    failed = queue.enqueue(rq_program.fail)
    assert result(failed) is None
    until(lambda: failed.id in queue.failed_job_registry.get_job_ids())
    assert "on purpose" in failed.latest_result().exc_string
    assert result(queue.enqueue(rq_program.flaky, "flaky", retry=Retry(max=2))) == "mended"
    first = queue.enqueue(rq_program.add, 1, 1)
    assert result(queue.enqueue(rq_program.add, 2, 2, depends_on=first)) == 4
    assert result(queue.enqueue_in(timedelta(seconds=0.5), rq_program.add, 3, 3)) == 6
    many = [queue.enqueue(rq_program.add, number, 1) for number in range(10)]
    assert [result(job) for job in many] == [number + 1 for number in range(10)]


def killed() -> None:
    import rq_program

    queue = Queue(connection=client())
    queue.enqueue(rq_program.slow)
    assert result(queue.enqueue(rq_program.add, 4, 4)) == 8


def schedule() -> None:
    import rq_program
    from rq_scheduler import Scheduler

    job = Scheduler(connection=client()).enqueue_in(timedelta(seconds=0.3), rq_program.add, 5, 5)
    assert result(job) == 10


def schedule_a_number() -> None:
    import rq_program
    from rq_scheduler import Scheduler

    Scheduler(connection=client()).enqueue_in(timedelta(seconds=1), rq_program.numbered, 1)


def offer() -> None:
    import rq_program

    queue = Queue(connection=client())
    load.offer(lambda number: queue.enqueue(rq_program.numbered, number))


if __name__ == "__main__":
    assert URL or not os.environ.get("RQ_REDIS_URL")
    parts = (work, jobs, killed, schedule, schedule_a_number, offer)
    {part.__name__: part for part in parts}[sys.argv[1]]()
    print("done", flush=True)
