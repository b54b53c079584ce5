"""Frameworks that speak with a server alone: each as its documentation has it, its worker a process."""

from __future__ import annotations

import os

import pytest
from ports import free_port

from compat_tests.frameworks.stage import Program, Stage


def test_django_s_cache_aiocache_broadcaster_redis_om_and_kombu(stage: Stage) -> None:
    stage.run_python("async_clients_program.py")


@pytest.mark.parametrize("kind", ["list", "stream"])
def test_taskiq(stage: Stage, kind: str) -> None:
    stage.environment["TASKIQ_KIND"] = kind
    worker = stage.start("taskiq", "worker", "taskiq_program:broker", "--workers", "1")
    worker.wait_for("Listening started")
    stage.run_python("taskiq_program.py")


def saq_worker(stage: Stage) -> Program:
    return stage.start("saq", "saq_program.settings", "--quiet")


def test_saq(stage: Stage) -> None:
    saq_worker(stage)
    stage.run_python("saq_program.py", "jobs")


def test_saq_does_a_job_again_whose_worker_was_killed(stage: Stage) -> None:
    stage.environment["SAQ_SWEEPS"] = "1"
    first = saq_worker(stage)
    client = stage.python("saq_program.py", "killed")
    first.wait_for("slow begins")
    first.kill()
    saq_worker(stage)
    client.wait_for("result: done by another")


@pytest.mark.skipif(not os.environ.get("RLITE_TEST_OLD_REDIS"), reason="arq is not installed")
def test_arq(stage: Stage) -> None:
    python = os.environ["RLITE_TEST_OLD_REDIS"]
    worker = stage.start(python, "-m", "arq", "arq_program.WorkerSettings")
    stage.run(python, stage.program("arq_program.py"))
    worker.wait_for("cron", times=2)


def test_faststream(stage: Stage) -> None:
    stage.start("faststream", "run", "faststream_program:app").wait_for("FastStream app started successfully")
    stage.run_python("faststream_program.py")


def docket_worker(stage: Stage) -> Program:
    assert stage.server is not None
    words = ("--docket", "program", "--url", f"{stage.server.url}/0", "--tasks", "docket_program:tasks")
    return stage.start("docket", "worker", *words, "--redelivery-timeout", "2s")


def test_docket(stage: Stage) -> None:
    worker = docket_worker(stage)
    stage.run_python("docket_program.py", "tasks")
    for text in ("now", "later", "replaced", "mended"):
        worker.wait_for(f"note: {text}")
    assert "never" not in worker.printed()


def test_docket_does_a_task_again_whose_worker_was_killed(stage: Stage) -> None:
    first = docket_worker(stage)
    stage.run_python("docket_program.py", "killed")
    first.wait_for("slow begins")
    first.kill()
    docket_worker(stage).wait_for("note: done by another")


@pytest.mark.parametrize("kind", ["core", "pubsub"])
def test_channels_redis(stage: Stage, kind: str) -> None:
    listener = stage.python("channels_redis_program.py", kind, "listen")
    listener.wait_for("joined ")
    name = listener.printed().split("joined ")[1].split()[0]
    stage.run_python("channels_redis_program.py", kind, name)
    listener.succeed()


def test_python_socketio(stage: Stage) -> None:
    ports = [str(free_port()) for _ in range(2)]
    for port in ports:
        stage.python("socketio_program.py", "serve", port).wait_for("Uvicorn running")
    stage.run_python("socketio_program.py", "clients", *ports)
