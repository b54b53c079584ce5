"""The state of a part of a link, and the end of its connections: after that it soon opens another one."""

from __future__ import annotations

import asyncio
from typing import Final

from redis.exceptions import RedisError

from rlite_pubsub.links.envelope import BadFrame

UP, DOWN, CONNECTING, PAUSED = "up", "down", "connecting", "paused"
RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
SIGN_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 20.0
"""Between two signs of life; without any for so long the other side is gone."""
BREAKS: Final = (RedisError, OSError, EOFError, BadFrame, TimeoutError, asyncio.TimeoutError)
"""What ends a connection, and not the link."""
