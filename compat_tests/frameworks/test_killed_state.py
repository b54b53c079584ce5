"""What frameworks keep is found again by the clients that were there before the server was killed with -9, and by a new
process where they were killed themselves."""

from __future__ import annotations

import pytest
from patience import until

from compat_tests.frameworks.stage import Server, Stage
from compat_tests.frameworks.test_node_frameworks import NODE, needs_node
from compat_tests.frameworks.test_with_and_without import rq_worker


@pytest.mark.parametrize("program", ["state_program.py", pytest.param("state.js", marks=needs_node)])
def test_caches_sessions_models_and_limits(server: Server, stage: Stage, program: str) -> None:
    words = (NODE if program.endswith(".js") else "python", stage.program(program))
    keeper = stage.start(*words, "keep")
    keeper.wait_for("kept")
    server.kill()
    server.start()
    (stage.folder / "go on").touch()
    keeper.wait_for("found")
    keeper.kill()
    server.kill()
    server.start()
    stage.run(*words, "check")


def test_apscheduler_runs_its_jobs_again(server: Server, stage: Stage) -> None:
    stage.run_python("apscheduler_program.py", "add")
    runner = stage.python("apscheduler_program.py", "run")
    runner.wait_for("job: again", times=2)
    server.kill()
    runner.kill()  # its thread may have ended already: what it forgives is a store that it cannot read, not write
    server.start()
    stage.python("apscheduler_program.py", "run").wait_for("job: again", times=2)


def test_rq_scheduler_enqueues_what_was_scheduled(server: Server, stage: Stage) -> None:
    stage.run_python("rq_program.py", "schedule_a_number")
    server.kill()
    server.start()
    stage.start("rqscheduler", "--url", server.url, "--interval", "0.2")
    rq_worker(stage)
    until(lambda: (stage.folder / "done").exists(), "the job")
