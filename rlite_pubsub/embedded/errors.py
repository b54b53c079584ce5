"""The errors of a program without a server, in redis-py's family of exceptions.

None of them is a ConnectionError: redis-py retries those, which would not help here.
"""

from __future__ import annotations

from redis.exceptions import RedisError


class StoreUnavailable(RedisError):
    """The store cannot be opened, for the reason given."""


class TakenOver(RedisError):
    """A durable subscriber is attached to one connection, the newest: this one was closed. (Trying again would close
    the other, which would try again.)"""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this connection to a durable subscriber was closed: {reason}")


class UsedAfterFork(RedisError):
    """A connection, and a `PubSub` with it, belongs to the process that made it: a forked child makes its own."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"this connection to {path} belongs to the process that this one was forked from: "
            "make a new PubSub (or Monitor, or Pipeline) here"
        )


class CutOff(RedisError):
    """This process has not read for so long that its mailbox came to its limit (`client-output-buffer-limit pubsub`),
    or was the largest of a full store: it was sent nothing from then on, and what waited for it is gone. Reading on
    subscribes it again. (With `slow-subscriber-policy drop-oldest` the oldest messages are dropped, and it learns how
    many.)"""

    def __init__(self) -> None:
        super().__init__("cut off: this process has not read for too long, and messages for it are lost")
