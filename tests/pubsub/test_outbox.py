"""The outbox of a session at a socket: what is written, and what no longer is."""

from __future__ import annotations

import pytest
from recorded_session import House

from rlite_pubsub.pubsub.outbox import PushedOutbox


class Cut:
    """A session that notes that it was cut."""

    was_cut = False

    def cut(self) -> None:
        self.was_cut = True


@pytest.fixture
def written() -> list[bytes]:
    return []


@pytest.fixture
def outbox(written: list[bytes]) -> PushedOutbox:
    def send(data: bytes | memoryview) -> int:
        written.append(bytes(data))
        return len(data)

    return PushedOutbox(House().engine.pressure, send)


def test_all_that_was_said_in_a_turn_is_written_at_once(outbox: PushedOutbox, written: list[bytes]) -> None:
    outbox.said += [b"one", b"two"]
    assert outbox.flush(Cut())  # type: ignore[arg-type]
    assert written == [b"onetwo"]
    assert not outbox.said


def test_what_is_said_after_its_end_goes_nowhere_for_its_descriptor_may_be_another_sessions(
    outbox: PushedOutbox, written: list[bytes]
) -> None:
    reader = Cut()
    outbox.end()
    outbox.said.append(b"late")
    assert not outbox.flush(reader)  # type: ignore[arg-type]
    assert reader.was_cut
    assert not written
