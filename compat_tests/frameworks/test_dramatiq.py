"""Dramatiq on a server and on a folder, and a worker that is killed."""

from __future__ import annotations

from compat_tests.frameworks.stage import Program, Stage


def worker(stage: Stage) -> Program:
    started = stage.start("dramatiq", "dramatiq_program", "--processes", "2", "--threads", "2")
    started.wait_for("is ready for action", times=2)
    return started


def test_results_retries_delays_groups_and_pipelines(place: Stage) -> None:
    worker(place)
    place.run_python("dramatiq_program.py", "client")


def test_a_message_of_a_killed_worker_is_done_by_another(place: Stage) -> None:
    first = worker(place)
    client = place.python("dramatiq_program.py", "killed")
    first.wait_for("slow begins")
    first.kill()
    worker(place)
    client.wait_for("result: done by another")
