"""Redis Cluster's slots: which of the 16,384 a key belongs to. A `{tag}` in its name decides, so that keys of the same
tag are together."""

from __future__ import annotations

from binascii import crc_hqx
from typing import Final

SLOTS: Final = 16384


def slot_of(key: bytes) -> int:
    """Return the CRC16 (XMODEM) of the key, or of the part between the first `{` and the next `}`, if there is any."""
    begin = key.find(b"{")
    if begin >= 0:
        end = key.find(b"}", begin + 1)
        if end > begin + 1:
            key = key[begin + 1 : end]
    return crc_hqx(key, 0) & (SLOTS - 1)
