"""What a PubSub has to say, waiting no longer than it takes."""

from __future__ import annotations

from typing import Any

from patience import PATIENCE_S


def messages(pubsub: Any, count: int) -> list[Any]:
    """The data of the next messages, confirmations left out."""
    found: list[Any] = []
    while len(found) < count:
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None, f"only {len(found)} of {count} messages came"
        if message["type"].endswith("message"):
            found.append(message["data"])
    return found


def confirmations(pubsub: Any, count: int) -> list[tuple[str, Any, int]]:
    """The next (type, name, count)."""
    found = []
    for _ in range(count):
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None
        found.append((message["type"], message["channel"], message["data"]))
    return found
