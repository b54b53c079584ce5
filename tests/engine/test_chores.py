"""What is done now and then: what one part meets keeps no other from its work, and is logged once for each kind."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from rlite_pubsub.engine.housekeeping import Chores
from rlite_pubsub.storage.errors import StoreUnwritable

FULL = StoreUnwritable(Path("data.mdb"), "No space left on device")


def fail(failure: Exception) -> None:
    raise failure


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_one_raises_keeps_no_other_from_its_work_and_is_undone(caplog: pytest.LogCaptureFixture) -> None:
    undone: list[Exception] = []
    done: list[str] = []
    chores = Chores(undone.append)
    wrong = LookupError()
    chores.do("to look", lambda: fail(wrong))
    chores.do("to sweep", lambda: done.append("swept"))
    assert undone == [wrong]
    assert done == ["swept"]
    assert warnings(caplog) == ["Failed to look"]


def test_each_kind_is_logged_once_until_it_has_gone_well_again(caplog: pytest.LogCaptureFixture) -> None:
    chores = Chores(lambda failure: None)
    for failure in (FULL, FULL, LookupError(), FULL, LookupError()):
        chores.do("to sweep", lambda failure=failure: fail(failure))  # type: ignore[misc]
    assert warnings(caplog) == [f"Failed to sweep: {FULL}", "Failed to sweep"]
    chores.do("to sweep", lambda: None)
    chores.do("to sweep", lambda: fail(FULL))
    assert len(warnings(caplog)) == 3


def test_what_cannot_be_undone_is_told_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    chores = Chores(fail)
    chores.do("to sweep", lambda: fail(FULL))
    assert warnings(caplog) == [f"Failed to sweep: {FULL}", f"Failed to sweep, and to undo it: {FULL}"]
