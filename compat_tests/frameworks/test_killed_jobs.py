"""Every queue in the middle of work: worker and server are killed with -9, and no job is lost that was acknowledged.

A client offers numbered jobs all the time and keeps some ahead of what is done (programs/load.py). What a framework
does not promise itself is told beside its name: with redis-server (RLITE_FRAMEWORKS_REFERENCE=1) it does not, either.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial

import pytest

from compat_tests.frameworks.load import Load
from compat_tests.frameworks.stage import Program, Server, Stage
from compat_tests.frameworks.test_node_frameworks import NODE, needs_node

OLD_REDIS = os.environ.get("RLITE_TEST_OLD_REDIS", "")


@dataclass(frozen=True)
class Queue:
    """How its worker and its client are started, `{url}` being the server's."""

    worker: tuple[str, ...]
    ready: str
    client: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    taken: int = 0
    """So many jobs at most are in no queue any more and not done yet: a kill, of either, may cost them."""
    ends_without_server: bool = False
    """Its worker ends where the server has gone, and whoever keeps it (systemd, a container) starts it again."""
    knows_scripts: bool = True
    """Otherwise it says SCRIPT LOAD when it starts and never again, and a server that starts knows no scripts: whoever
    restarts that restarts worker and client as well."""

    claims_behind_new_jobs: bool = False
    """It looks for what others have left only when a new job has come, so the client goes on until that is done."""

    def start(self, stage: Stage, words: tuple[str, ...]) -> Program:
        stage.environment |= dict(self.environment)
        url = stage.server.url if stage.server is not None else ""
        return stage.start(*(word.replace("{url}", url) for word in words))


def python(file: str, *words: str) -> tuple[str, ...]:
    return ("python", Stage.program(file), *words)


QUEUES = {
    "celery": Queue(
        ("celery", "-A", "celery_program", "worker", "--concurrency", "2", "--loglevel", "info", "--without-mingle"),
        " ready.",
        python("celery_program.py", "offer"),
        taken=1,  # by BRPOP, and then written down as not acknowledged by another request
        ends_without_server=True,  # kombu 5.7: "Unrecoverable error", where it has messages that are not acknowledged
    ),
    "kombu": Queue(
        python("kombu_program.py", "work"),
        "ready",
        python("kombu_program.py", "offer"),
        taken=1,  # as Celery's
    ),
    "rq": Queue(
        ("rq", "worker", "--url", "{url}"),
        "Listening on default",
        python("rq_program.py", "offer"),
        taken=1,  # its registry of started jobs keeps it, as abandoned
        ends_without_server=True,
    ),
    "dramatiq": Queue(
        ("dramatiq", "dramatiq_program", "--processes", "1", "--threads", "2"),
        "is ready for action",
        python("dramatiq_program.py", "offer"),
        environment=(("dramatiq_restart_delay", "200"),),
    ),
    "huey": Queue(
        ("huey_consumer", "huey_program.huey", "--workers", "2", "--scheduler-interval", "1"),
        "Huey consumer started",
        python("huey_program.py", "offer"),
        taken=2,  # by BRPOP, one for each of its threads
    ),
    "arq": Queue(
        (OLD_REDIS, "-m", "arq", "arq_program.WorkerSettings"),
        "Starting worker",
        (OLD_REDIS, Stage.program("arq_program.py"), "offer"),
        ends_without_server=True,
    ),
    "saq": Queue(
        ("saq", "saq_program.settings", "--verbose"),
        "Worker starting",
        python("saq_program.py", "offer"),
        environment=(("SAQ_SWEEPS", "1"), ("SAQ_CONCURRENCY", "1")),  # it sweeps a job of the killed in five seconds
        taken=1,  # by its sweep: for five seconds, between abort and retry, it is in no list
    ),
    "taskiq over lists": Queue(
        ("taskiq", "worker", "taskiq_program:broker", "--workers", "1", "--max-async-tasks", "4"),
        "Listening started",
        python("taskiq_program.py", "offer"),
        taken=6,  # by BRPOP: four are done, and the next ones are fetched
    ),
    "taskiq over streams": Queue(
        ("taskiq", "worker", "taskiq_program:broker", "--workers", "1", "--max-async-tasks", "4"),
        "Listening started",
        python("taskiq_program.py", "offer"),
        environment=(("TASKIQ_KIND", "stream"),),
        claims_behind_new_jobs=True,
    ),
    "faststream over lists": Queue(
        ("faststream", "run", "faststream_program:app"),
        "FastStream app started successfully",
        python("faststream_program.py", "offer"),
        taken=1,  # by BLPOP
    ),
    "faststream over streams": Queue(
        ("faststream", "run", "faststream_program:app"),
        "FastStream app started successfully",
        python("faststream_program.py", "offer"),
        environment=(("FASTSTREAM_KIND", "stream"),),
    ),
    "docket": Queue(
        ("docket", "worker", "--docket", "program", "--url", "{url}/0", "--tasks", "docket_program:tasks",
         "--redelivery-timeout", "2s", "--reconnection-delay", "1s"),
        "Starting worker",
        python("docket_program.py", "offer"),
    ),
    **{
        kind: Queue(
            (NODE, Stage.program("queues.js"), kind, "worker"),
            "ready",
            (NODE, Stage.program("queues.js"), kind, "offer"),
            knows_scripts=kind != "bee",
        )
        for kind in ("bullmq", "bull", "bee")
    },
}  # fmt: skip
WITHOUT_SERVER = {
    **{name: QUEUES[name] for name in ("celery", "kombu", "dramatiq", "huey")},
    "rq": replace(QUEUES["rq"], worker=python("rq_program.py", "work")),
}
NEEDS = {
    "arq": [pytest.mark.skipif(not OLD_REDIS, reason="arq is not installed")],
    **dict.fromkeys(("bullmq", "bull", "bee"), [needs_node]),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, [])) for name in QUEUES])
def test_jobs_that_were_acknowledged_are_done_though_worker_and_server_are_killed(
    server: Server, stage: Stage, name: str
) -> None:
    queue = QUEUES[name]
    load = Load(stage, partial(queue.start, stage, queue.worker), queue.ready, queue.ends_without_server)
    client = queue.start(stage, queue.client)
    load.goes_on()
    assert "refused" not in client.printed()
    for kill in (server.kill, load.kill_worker, server.kill):
        kill()
        load.has_killed()
        if kill == server.kill:
            server.start()
            if not queue.knows_scripts:
                client.kill()
                load.kill_worker()
                client = queue.start(stage, queue.client)
        load.goes_on()
    if queue.claims_behind_new_jobs:
        load.has_made_up()
    load.stop()
    client.succeed()
    load.all_are_done(but=queue.taken)


@pytest.mark.parametrize("name", WITHOUT_SERVER)
def test_with_no_server_jobs_that_were_acknowledged_are_done_though_the_worker_is_killed(
    folder_stage: Stage, name: str
) -> None:
    queue = WITHOUT_SERVER[name]
    load = Load(folder_stage, partial(queue.start, folder_stage, queue.worker), queue.ready, restarts=False)
    client = queue.start(folder_stage, queue.client)
    for _ in range(2):
        load.goes_on()
        load.kill_worker()
        load.has_killed()
    load.goes_on()
    load.stop()
    client.succeed()
    load.all_are_done(but=queue.taken)
    assert "refused" not in client.printed()
