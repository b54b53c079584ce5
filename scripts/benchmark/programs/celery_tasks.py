"""A Celery worker, as its documentation starts it, and the tasks that it does, with their results in the store.

    celery_tasks.py URL FOLDER TASKS

Says "ready" once the worker is. Each time it is told to go on it sends so many tasks to a queue that nobody reads, and
says "sent"; told to go on again, it lets the worker read that queue, and says how many seconds passed between the first
one done and the last. What is done is counted by the bytes of a file in FOLDER, which costs the server nothing.
"""

import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

from celery import Celery

CONCURRENCY = 2
LOOK_AGAIN_S = 0.001
URL, FOLDER = "CELERY_TASKS_URL", "CELERY_TASKS_FOLDER"

if __name__ == "__main__":
    os.environ |= {URL: sys.argv[1], FOLDER: sys.argv[2], "PYTHONPATH": str(Path(__file__).parent)}
    sys.path.insert(0, str(Path(__file__).parent))
done = Path(os.environ[FOLDER], "done")
app = Celery("celery_tasks", broker=os.environ[URL], backend=os.environ[URL])
app.conf.broker_connection_retry_on_startup = True


@app.task
def add(a: int, b: int) -> int:
    with done.open("ab", buffering=0) as tally:
        tally.write(b".")
    return a + b


def main(tasks: int) -> None:
    import celery_tasks  # under this name the worker knows the task

    def say(what: object) -> None:
        print(json.dumps(what), flush=True)

    words = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--concurrency", str(CONCURRENCY)]
    worker = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    celery_tasks.add.delay(1, 1).get(timeout=60)
    say("ready")
    for number in count():
        if not sys.stdin.readline():
            break
        queue = f"queue {number}"
        results = [celery_tasks.add.apply_async((n, 1), queue=queue) for n in range(tasks)]
        before = done.stat().st_size
        say("sent")
        sys.stdin.readline()
        app.control.add_consumer(queue)
        begin = 0.0
        while (count_done := done.stat().st_size - before) < tasks:
            assert worker.poll() is None, "the worker has ended"
            begin = begin or (time.perf_counter() if count_done else 0.0)
            time.sleep(LOOK_AGAIN_S)
        took_s = time.perf_counter() - begin
        assert [results[n].get(timeout=60) for n in (-1, 0)] == [tasks, 1]
        say(took_s)
    worker.terminate()
    worker.wait()


if __name__ == "__main__":
    main(int(sys.argv[3]))
