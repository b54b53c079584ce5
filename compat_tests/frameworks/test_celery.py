"""Celery, whole, on a server: its worker, its beat, and kill -9 of the worker and of the server."""

from __future__ import annotations

from compat_tests.frameworks.stage import Program, Server, Stage

APP = ("celery", "-A", "celery_program")


def worker(stage: Stage, *words: str) -> Program:
    started = stage.start(*APP, "worker", "--concurrency", "2", "--loglevel", "info", "--without-mingle", "-E", *words)
    started.wait_for(" ready.")
    return started


def test_canvas_retries_results_and_remote_control(stage: Stage) -> None:
    worker(stage)
    stage.run_python("celery_program.py", "canvas")
    stage.run_python("celery_program.py", "control")


def test_beat_sends_tasks(stage: Stage) -> None:
    doing = worker(stage)
    stage.start(*APP, "beat", "--loglevel", "info", "--max-interval", "0.1")
    doing.wait_for("tick[", times=3)


def test_a_late_acknowledged_task_of_a_killed_worker_is_done_by_another(stage: Stage) -> None:
    first = worker(stage, "--hostname", "first@%h")
    client = stage.python("celery_program.py", "killed")
    first.wait_for("late begins")
    first.kill()
    worker(stage, "--hostname", "second@%h")
    client.wait_for("result: done by another")


def test_no_task_is_lost_where_the_server_is_killed(server: Server, stage: Stage) -> None:
    worker(stage)
    client = stage.python("celery_program.py", "load", "200")
    client.wait_for("a quarter is sent")
    server.kill()
    server.start()
    client.wait_for("done")
