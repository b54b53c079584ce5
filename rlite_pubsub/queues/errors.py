"""The errors of queues."""

from __future__ import annotations

from redis.exceptions import ResponseError


class NoSuchQueue(ResponseError):
    """The queue or subscriber does not exist."""


class NoSuchSubscriber(ResponseError):
    """The queue or subscriber does not exist."""


class SubscriberAsleep(ResponseError):
    """The subscriber is asleep, and receives nothing until it is woken."""


_KINDS: dict[str, type[ResponseError]] = {
    "ASLEEP": SubscriberAsleep,
    "NOQUEUE": NoSuchQueue,
    "NOSUBSCRIBER": NoSuchSubscriber,
}


def explained(refusal: ResponseError) -> ResponseError:
    """The error by its name."""
    code, _, message = str(refusal).partition(" ")
    kind = _KINDS.get(code)
    return refusal if kind is None else kind(message)
