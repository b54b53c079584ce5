"""The process that sends an RDB file of a store to a client. The client's socket is its standard output
(server/companions/dumps.py).

    $size, and so many bytes

The file is written whole, without a name, before anything is sent: a client that reads slowly keeps no snapshot open.
Where that fails the client gets no file, but the end of the connection.
"""

from __future__ import annotations

import os
import sys
import tempfile

from rlite_pubsub.replication.exporting import export_from

_OUT = 1
_BUFFERED = 1 << 20
_PIECE_BYTES = 1 << 18


def main() -> int:
    folder, what = sys.argv[1:]
    os.set_blocking(_OUT, True)
    with tempfile.TemporaryFile(dir=folder, buffering=_BUFFERED) as file:
        export_from(folder, file.write, only_functions=what == "functions")
        size = file.tell()
        file.seek(0)
        _say(b"$%d\r\n" % size)
        while piece := file.read(_PIECE_BYTES):
            _say(piece)
    return 0


def _say(data: bytes) -> None:
    """All of it. Raises OSError where the client is gone, or takes nothing for too long."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(_OUT, rest) :]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as failure:
        print(f"rlite-pubsub: an RDB file could not be sent: {failure}", file=sys.stderr)
        sys.exit(1)
