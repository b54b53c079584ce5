"""What can be attacked, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from campaign import Target
from target_commands import Commands

TARGETS: dict[str, Callable[[Path], Target]] = {"commands": Commands}
