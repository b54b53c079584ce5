"""A channel, or all that match a pattern, followed live: what is published while the connection is gone is not seen,
and that is said."""

from __future__ import annotations

import time
from typing import Any

from rlite_pubsub.cli_ending import say
from rlite_pubsub.cli_output import Output
from rlite_pubsub.cli_tail_items import Message
from rlite_pubsub.cli_text import escaped, raw

FIRST_DELAY_S, LAST_DELAY_S = 0.05, 1.0


def follow_channel(client: Any, name: str, output: Output, look_s: float, *, is_pattern: bool) -> None:
    """Until enough is shown. A server that is not there at first is an error; later it is waited for."""
    from redis.exceptions import ConnectionError, TimeoutError

    following = _Following(client, name, output, look_s, is_pattern)
    delay_s = 0.0
    while True:
        try:
            following.listen()
            return
        except (ConnectionError, TimeoutError) as failure:
            if not following.has_begun:
                raise
            if following.is_subscribed:
                say(f"the connection is gone ({failure}): what is published until it is back is not shown")
                delay_s = 0.0
            following.is_subscribed = False
            delay_s = min(max(2 * delay_s, FIRST_DELAY_S), LAST_DELAY_S)
            time.sleep(delay_s)


class _Following:
    """One after the other: the subscriptions of one `tail`."""

    def __init__(self, client: Any, name: str, output: Output, look_s: float, is_pattern: bool) -> None:
        self._client = client
        self._name = name
        self._output = output
        self._look_s = look_s
        self._is_pattern = is_pattern
        self.has_begun = False
        self.is_subscribed = False

    def listen(self) -> None:
        """Until enough is shown, or the connection is lost."""
        with self._client.pubsub() as pubsub:
            (pubsub.psubscribe if self._is_pattern else pubsub.subscribe)(self._name)
            while True:
                message = pubsub.get_message(timeout=self._look_s)
                if message is None:
                    self._output.check()
                elif not self._take(message):
                    return

    def _take(self, message: dict[str, Any]) -> bool:
        match message["type"]:
            case "message" | "pmessage":
                pattern = None if message["pattern"] is None else raw(message["pattern"])
                return self._output.put(Message(raw(message["channel"]), pattern, raw(message["data"])))
            case "subscribe" | "psubscribe":
                if self.has_begun and not self.is_subscribed:
                    say("the connection is back")
                self.has_begun = self.is_subscribed = True
            case "gap":
                say(f"gap: {message['data']} messages of {escaped(raw(message['channel']))} are lost")
        return True
