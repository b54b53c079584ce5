"""Frameworks that take a client or a pool: each runs on a server, and with no server on a folder."""

from __future__ import annotations

from compat_tests.frameworks.stage import Program, Stage


def rq_worker(place: Stage) -> Program:
    if place.server is not None:
        worker = place.start("rq", "worker", "--with-scheduler", "--url", place.server.url)
    else:
        worker = place.python("rq_program.py", "work")
    worker.wait_for("Listening on default")
    return worker


def test_rq_s_jobs_retries_dependencies_and_delays(place: Stage) -> None:
    rq_worker(place)
    place.run_python("rq_program.py", "jobs")


def test_rq_goes_on_where_a_worker_is_killed(place: Stage) -> None:
    worker = rq_worker(place)
    client = place.python("rq_program.py", "killed")
    worker.wait_for("slow begins")
    worker.kill()
    rq_worker(place)
    client.succeed()


def test_rq_scheduler(stage: Stage) -> None:
    rq_worker(stage)
    assert stage.server is not None
    stage.start("rqscheduler", "--url", stage.server.url, "--interval", "0.2")
    stage.run_python("rq_program.py", "schedule")


def huey_worker(place: Stage) -> Program:
    worker = place.start("huey_consumer", "huey_program.huey", "--workers", "2", "--scheduler-interval", "1")
    worker.wait_for("Huey consumer started")
    return worker


def test_huey_s_results_retries_delays_pipelines_and_locks(place: Stage) -> None:
    huey_worker(place)
    place.run_python("huey_program.py", "tasks")


def test_huey_goes_on_where_a_worker_is_killed(place: Stage) -> None:
    worker = huey_worker(place)
    place.run_python("huey_program.py", "begin")
    worker.wait_for("slow begins")
    worker.kill()
    huey_worker(place)
    place.run_python("huey_program.py", "go on")


def test_apscheduler_s_jobs_outlive_the_process_that_added_them(place: Stage) -> None:
    place.run_python("apscheduler_program.py", "add")
    runner = place.python("apscheduler_program.py", "run")
    runner.wait_for("job: once")
    runner.wait_for("job: again", times=3)
    runner.kill()
    place.python("apscheduler_program.py", "run").wait_for("job: again")


def test_limits_hold_for_all_processes(place: Stage) -> None:
    place.run_python("limits_program.py", "first").wait_for("took [8, 8, 8]")
    place.run_python("limits_program.py", "second").wait_for("took [2, 2, 2]")


def test_flask_with_sessions_limits_and_server_sent_events(place: Stage) -> None:
    place.run_python("flask_program.py")


def test_django_redis(place: Stage) -> None:
    place.run_python("django_program.py")
