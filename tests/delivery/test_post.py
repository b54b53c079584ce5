"""What goes from process to process is what was published, whatever it looks like."""

from __future__ import annotations

import pytest

from rlite_pubsub.delivery.post import tails_of
from rlite_pubsub.storage import letters


@pytest.mark.parametrize(
    "payloads",
    [
        [b"one"],
        [b"x" * 20, b"y" * 20, b"z" * 20],
        [b"x" * 20, b"y" * 20, b"z" * 20, b"shorter"],
        [b"x" * 20, b"y" * 20, b"z" * 20, b"longer" * 10, b""],
        [b"ends\r\n$", b"x"],
        [b"has a header\r\n$3\r\nabc", b"x"],
        [b"\r\n$1\r\nx\r\n"] * 3,
        [b"x" * 600, b"\r\n$600\r\n", b"x" * 600],
    ],
)
def test_a_run_is_read_as_it_was_packed(payloads: list[bytes]) -> None:
    tails = [b"%d\r\n%b" % (len(payload), payload) for payload in payloads]
    run = letters.unpack(letters.pack(0, b"news", tails))
    assert letters.tails(run) == tails
    assert tails_of(run) == tails
