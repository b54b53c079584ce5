"""A work queue over a folder: two workers, one of which dies with a job, and a job that nobody can do.

    python jobs.py

prints

    worker-1 dies with ada
    worker-2 has mailed ada
    given up: nobody, after 2 deliveries
"""

import multiprocessing
import os

import rlite_pubsub


def connect():
    return rlite_pubsub.Redis("./store", decode_responses=True)


def work(name, dies):
    """A worker, which ends when there is nothing to do for a second."""
    r = connect()
    while answer := r.xreadgroup("mailers", name, {"jobs": ">"}, count=1, block=1000):
        [[_, [(id, job)]]] = answer
        if dies:
            print(name, "dies with", job["to"], flush=True)
            os._exit(1)  # its job goes to the next one that asks, after the timeout
        if job["to"] == "nobody":
            continue  # never acknowledged
        print(name, "has mailed", job["to"], flush=True)
        r.xack("jobs", "mailers", id)


def run(name, dies=False):
    worker = multiprocessing.Process(target=work, args=(name, dies))
    worker.start()
    worker.join()


if __name__ == "__main__":
    r = connect()
    r.xgroup_create("jobs", "mailers", id="0", mkstream=True)
    r.execute_command(*"TOPIC.GROUP jobs mailers TIMEOUT 200 MAXDELIVERIES 2 DEADLETTER jobs.dead".split())
    r.xadd("jobs", {"to": "ada"})
    run("worker-1", dies=True)
    run("worker-2")

    r.xadd("jobs", {"to": "nobody"})
    run("worker-3")
    run("worker-3")
    [[_, dead]] = r.xrange("jobs.dead")
    print("given up:", dead["to"] + ", after 2 deliveries")
