"""Celery, whole, on a server and on a folder: worker, beat, and kill -9 of the worker and of the server."""

from __future__ import annotations

from compat_tests.frameworks.stage import Program, Server, Stage

APP = ("celery", "-A", "celery_program")


def worker(stage: Stage, *words: str) -> Program:
    started = stage.start(*APP, "worker", "--concurrency", "2", "--loglevel", "info", "--without-mingle", "-E", *words)
    started.wait_for(" ready.")
    return started


def test_canvas_retries_results_and_remote_control(place: Stage) -> None:
    worker(place)
    place.run_python("celery_program.py", "canvas")
    place.run_python("celery_program.py", "control")


def test_beat_sends_tasks(place: Stage) -> None:
    doing = worker(place)
    place.start(*APP, "beat", "--loglevel", "info", "--max-interval", "1")
    doing.wait_for("tick[", times=3)


def test_a_late_acknowledged_task_of_a_killed_worker_is_done_by_another(place: Stage) -> None:
    first = worker(place, "--hostname", "first@%h")
    client = place.python("celery_program.py", "killed")
    first.wait_for("late begins")
    first.kill()
    worker(place, "--hostname", "second@%h")
    client.wait_for("result: done by another")


def test_no_task_is_lost_where_the_server_is_killed(server: Server, stage: Stage) -> None:
    worker(stage, "--hostname", "first@%h")
    client = stage.python("celery_program.py", "outlive")
    client.wait_for("sent")
    server.kill()
    server.start()
    worker(stage, "--hostname", "second@%h", "--queues", "later")
    client.wait_for("done")
