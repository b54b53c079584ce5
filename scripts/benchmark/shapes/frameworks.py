"""What users of a queue see: a framework's own worker at work, whose processes share the cores with the server.

The server's part of a task is small: the framework's own code is most of it.
"""

from __future__ import annotations

import functools
import os
import shutil
from dataclasses import replace
from pathlib import Path

from ..contestant import Server, ServerFailed
from ..library import Program, environment, python
from ..shape import Effort, Figure, NotHere, Reading, Shape, Target, command_reading
from ..traffic import Clock
from .append import PERSISTENT

QUICK_TASKS = 20
FRAMEWORKS = Path("frameworks")
"""In the environment: what `scripts/test --frameworks` installs."""


class Queue(Shape):
    """Tasks a second, where all are in the queue before the worker reads it, for the second time."""

    options = PERSISTENT + "everysec"
    warms_up = False  # but for the first time
    rounds_at_most = 3
    tasks: int

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        tasks = QUICK_TASKS if effort.quick else self.tasks
        with self.program(server.url, server.folder, tasks) as program:
            program.hear()
            for _ in ("warm", "counted"):
                program.go_on()
                program.hear()
                server.settle()
                with Clock(server) as clock:
                    program.go_on()
                    seconds = program.hear()
            return (command_reading(replace(clock.tally(tasks, 0), seconds=seconds)),)

    def program(self, *words: object) -> Program:
        """Worker and client. Raises NotHere."""
        raise NotImplementedError


class Celery(Queue):
    """Two processes do the tasks, as `celery worker` starts them on two cores."""

    name = "celery-tasks"
    sentence = "a Celery worker of two processes: tasks that add two numbers, results in the store; fsync every second"
    figures = (Figure("rate", "tasks/s", target=Target(0.5)),)
    tasks = 2000

    def program(self, *words: object) -> Program:
        return Program("celery_tasks", *words, interpreter=celery_python())


class BullMQ(Queue):
    """One process of Node."""

    name = "bullmq-jobs"
    sentence = "a BullMQ worker, 10 jobs at a time, each of which adds two numbers; fsync every second"
    figures = (Figure("rate", "jobs/s", target=Target(0.5)),)
    tasks = 4000

    def program(self, *words: object) -> Program:
        node, modules = node_with_bullmq()
        return Program("bullmq_jobs.js", *words, interpreter=node, variables={"NODE_PATH": str(modules)})


@functools.cache
def celery_python() -> str:
    """A Python that has Celery. Raises NotHere."""
    try:
        return python("celery, redis", FRAMEWORKS / "python")
    except ServerFailed as failure:
        raise NotHere(str(failure)) from failure


@functools.cache
def node_with_bullmq() -> tuple[str, Path]:
    """Node, and the modules that it needs. Raises NotHere."""
    node = os.environ.get("RLITE_TEST_NODE") or shutil.which("node")
    modules = Path(os.environ.get("NODE_PATH") or environment() / FRAMEWORKS / "node" / "node_modules")
    if not node or not (modules / "bullmq").exists():
        raise NotHere("there is no node" if not node else f"there is no bullmq in {modules}")
    return node, modules


SHAPES: tuple[Shape, ...] = (Celery(), BullMQ())
