"""Frameworks of Node on a server, their workers as processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from compat_tests.frameworks.stage import Program, Stage

NODE = os.environ.get("RLITE_TEST_NODE", shutil.which("node")) or ""

needs_node = pytest.mark.skipif(
    not NODE or not Path(os.environ.get("NODE_PATH", "") or "/nowhere", "bullmq").exists(),
    reason="what runs on Node is not installed",
)

pytestmark = needs_node

QUEUES = ["bullmq", "bull", "bee"]


def node(stage: Stage, file: str, *words: str) -> Program:
    return stage.start(NODE, stage.program(file), *words)


def worker(stage: Stage, kind: str) -> Program:
    started = node(stage, "queues.js", kind, "worker")
    started.wait_for("ready")
    return started


@pytest.mark.parametrize("kind", QUEUES)
def test_jobs_of_all_sorts_are_done(stage: Stage, kind: str) -> None:
    worker(stage, kind)
    node(stage, "queues.js", kind, "client").succeed()


@pytest.mark.parametrize("kind", QUEUES)
def test_a_job_of_a_killed_worker_is_done_by_another(stage: Stage, kind: str) -> None:
    first = worker(stage, kind)
    client = node(stage, "queues.js", kind, "killed")
    first.wait_for("slow begins")
    first.kill()
    worker(stage, kind)
    client.wait_for("result: done by another")


@pytest.mark.parametrize("part", ["sessions", "limits", "subscriptions", "socketIo", "socketIoStreams"])
def test_web(stage: Stage, part: str) -> None:
    node(stage, "web.js", part).succeed()
