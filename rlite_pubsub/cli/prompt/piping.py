"""`--pipe`: requests from standard input to the server as they are, and only their replies are counted.

An ECHO of something that nobody else says follows the last request: its reply proves that all of them were executed.
Replies are read while requests are written, so that neither side waits for the other.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from typing import BinaryIO

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.wire import Wire
from rlite_pubsub.protocol.decoder import told_apart
from rlite_pubsub.protocol.errors import ProtocolError
from rlite_pubsub.protocol.frames import Frames
from rlite_pubsub.protocol.replies import Error, Push

_READ_BYTES = 1 << 16
_LOOK_S = 0.5


def transfer(wire: Wire, source: BinaryIO, patience_s: float) -> int:
    """Send all that `source` has. Answers 1 if a request failed, or if after the last one the server said nothing for
    `patience_s` (0: no limit). Raises OSError, and CommandFailed if the server leaves or the requests can't be read."""
    frames, proof = Frames(), secrets.token_hex(10).encode()
    waiting = b""
    has_all = False
    errors = replies = 0
    heard_at = time.monotonic()
    while True:
        if not waiting and not has_all:
            waiting = os.read(source.fileno(), _READ_BYTES)
            if not waiting:
                # an unfinished line of the input ends here, and not in the proof
                waiting = b"\r\n*2\r\n$4\r\nECHO\r\n$%d\r\n%b\r\n" % (len(proof), proof)
                has_all = True
        before = waiting
        try:
            sent, data = wire.exchange(waiting, _LOOK_S)
        except ProtocolError as failure:
            raise CommandFailed(failure.text.decode("latin-1")) from failure
        waiting = waiting[sent:]
        if has_all and before and not waiting:
            print("All data transferred. Waiting for the last reply...", flush=True)
        if data == b"":
            raise CommandFailed("Server closed the connection")
        now = time.monotonic()
        if data or before:
            heard_at = now
        try:
            heard = list(map(told_apart, frames.feed(data or b"")))
        except (ValueError, TypeError) as failure:
            raise CommandFailed(f"the server does not answer as Redis does: {failure}") from failure
        for reply in heard:
            if reply == proof and has_all:
                print(f"Last reply received from server.\nerrors: {errors}, replies: {replies}", flush=True)
                return 1 if errors else 0
            if isinstance(reply, Push):
                continue
            replies += 1
            if isinstance(reply, Error):
                errors += 1
                print(reply.decode(errors="backslashreplace"), file=sys.stderr, flush=True)
        if has_all and patience_s and now >= heard_at + patience_s:
            print(f"No replies for {patience_s:g} seconds: exiting.", file=sys.stderr)
            print(f"errors: {errors + 1}, replies: {replies}", flush=True)
            return 1
