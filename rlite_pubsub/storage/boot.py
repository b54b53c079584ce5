"""The id of the machine's present start."""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST_BYTES = 64


def boot_id() -> bytes:
    """Return an id that differs after each start; empty if the system has none."""
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        return _asked(b"kern.bootsessionuuid")


def _asked(name: bytes) -> bytes:
    """Ask the macOS kernel for a value; empty if there is none."""
    import ctypes

    ask = getattr(ctypes.CDLL(None), "sysctlbyname", None)
    if ask is None:
        return b""
    text = ctypes.create_string_buffer(_MOST_BYTES)
    size = ctypes.c_size_t(_MOST_BYTES)
    return bytes(text.value) if ask(name, text, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0 else b""
