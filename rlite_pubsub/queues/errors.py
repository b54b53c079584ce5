"""What a queue refuses, by name."""

from __future__ import annotations

from redis.exceptions import ResponseError


class NoSuchQueue(ResponseError):
    """It was never made, or is deleted."""


class NoSuchSubscriber(ResponseError):
    """It was never made, or is deleted."""


class SubscriberAsleep(ResponseError):
    """It is given nothing until it is woken."""


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
