"""An engine without sockets, and who speaks with it: fixtures of the tests of engine/ and commands/."""

from __future__ import annotations

import pytest
from parsed_session import ParsedSession
from recorded_session import House, RecordedSession


@pytest.fixture
def house(request: pytest.FixtureRequest) -> House:
    """With the settings of the mark `settings`, if there is one."""
    mark = request.node.get_closest_marker("settings")
    return House(**(mark.kwargs if mark is not None else {}))


@pytest.fixture
def session(house: House) -> RecordedSession:
    return house.session()


@pytest.fixture
def client(house: House) -> ParsedSession:
    return ParsedSession(house)
