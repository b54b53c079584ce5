"""redis-py's parsers within limits, for connections to servers that may be anybody's."""

from __future__ import annotations

from typing import Any, Final

from redis._parsers.hiredis import NOT_ENOUGH_DATA, _AsyncHiredisParser, _HiredisParser
from redis.exceptions import InvalidResponse

from rlite_pubsub.protocol.bounded import BoundedReader, ReplyLimits

SHORT: Final = ReplyLimits(cost=64 << 20, elements=1 << 17, seconds=10.0)
"""Of what is short: introductions, and the cards of a directory."""


def _bounded(reader: Any, limits: ReplyLimits) -> Any:
    return BoundedReader(reader, limits, NOT_ENOUGH_DATA, InvalidResponse)


class BoundedParser(_HiredisParser):
    """Its replies are within the limits; texts are not decoded."""

    limits = ReplyLimits()
    _reader: Any  # said here for where redis-py's types are unknown: when a wheel is compiled

    def on_connect(self, connection: Any, **options: Any) -> None:
        super().on_connect(connection, **options)  # type: ignore[no-untyped-call]
        self._reader = _bounded(self._reader, self.limits)


class ShortParser(BoundedParser):
    """Its replies are short."""

    limits = SHORT


class ShortAsyncParser(_AsyncHiredisParser):
    """Its replies are short."""

    _reader: Any

    def on_connect(self, connection: Any) -> None:
        super().on_connect(connection)  # type: ignore[no-untyped-call]
        self._reader = _bounded(self._reader, SHORT)
