"""Every block of code in README.md and docs/ runs as it stands, or says in its first line why not: see blocks.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from blocks import PROSE, ROOT, RUN, SAVED, Block, blocks_of, indented_code, pages, stays
from patience import PATIENCE_S

BLOCKS = [block for path in pages() for block in blocks_of(path)]
RUNNING = [block for block in BLOCKS if block.language in RUN and not block.obstacle]
MOST_NOT_RUN = 12
"""Blocks that cannot run here. Raise it only for what truly cannot: each such block is one that nobody has tried."""

Answers = dict[int, dict[str, Any]]


def run_page(page: str) -> Answers:
    command = [sys.executable, str(Path(__file__).parent / "page_run.py"), page]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE_S, env=os.environ)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    return {answer["line"]: {**answer, "log": ended.stderr} for answer in answers}


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Answers]]]:
    """Each page that a chosen test is about, three at a time."""
    wanted: dict[str, None] = {}
    for item in request.session.items:
        block = getattr(item, "callspec", None) and item.callspec.params.get("block")  # type: ignore[attr-defined]
        if isinstance(block, Block):
            wanted[block.page] = None
    with ThreadPoolExecutor(3) as pool:
        yield {page: pool.submit(run_page, page) for page in wanted}


@pytest.mark.parametrize("block", RUNNING, ids=lambda block: block.name)
def test_a_block_runs_as_it_stands(block: Block, runs: dict[str, Future[Answers]]) -> None:
    answers = runs[block.page].result()
    assert block.line in answers, f"{block.name} was not reached"
    answer = answers[block.line]
    if "skipped" in answer:
        pytest.skip(answer["skipped"])
    assert "failed" not in answer, f"{block.name}\n{answer['failed']}\n{answer['log'][-2000:]}"


def test_what_cannot_run_says_why_and_is_rare() -> None:
    not_run = [f"{block.name}: {block.obstacle}" for block in BLOCKS if block.obstacle]
    assert len(not_run) <= MOST_NOT_RUN, not_run


def test_every_block_has_a_language_that_somebody_runs_or_reads() -> None:
    known = (*RUN, *SAVED, *PROSE)
    assert [block.name for block in BLOCKS if block.language not in known] == []
    assert [f"{path.relative_to(ROOT)}:{line}" for path in pages() for line in indented_code(path)] == []


def test_a_command_that_stays_is_the_last_of_its_block() -> None:
    """A reader who pastes the block would give that command the next one as its input."""
    shells = [block for block in RUNNING if block.language in ("bash", "console")]
    assert [block.name for block in shells if any(map(stays, block.commands[:-1]))] == []
