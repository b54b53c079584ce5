"""Which start of the machine this is."""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST_BYTES = 64


def boot_id() -> bytes:
    """Different after each start; empty where the system has none."""
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        return _asked(b"kern.bootsessionuuid")


def _asked(name: bytes) -> bytes:
    """What the kernel of macOS says of itself; empty where there is none to ask."""
    import ctypes

    ask = getattr(ctypes.CDLL(None), "sysctlbyname", None)
    if ask is None:
        return b""
    text = ctypes.create_string_buffer(_MOST_BYTES)
    size = ctypes.c_size_t(_MOST_BYTES)
    return bytes(text.value) if ask(name, text, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0 else b""
