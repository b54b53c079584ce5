"""Places of bits among a command's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

_REFUSAL = b"ERR bit offset is not an integer or out of range"


def bit_offset(session: CommandSession, text: bytes, bits: int = 0) -> int:
    """The place of a bit in a string. With `bits` it may be said as `#n`: behind n numbers of so many bits. Raises
    CommandError."""
    counts = bits > 0 and text.startswith(b"#")
    offset = integer(text[1:] if counts else text, 0, LONG_MAX, _REFUSAL) * (bits if counts else 1)
    if offset > LONG_MAX or offset >> 3 >= session.engine.settings["proto-max-bulk-len"]:
        raise CommandError(_REFUSAL)
    return offset
