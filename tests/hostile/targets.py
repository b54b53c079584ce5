"""What can be attacked, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from campaign import Target
from target_blocks import Blocks
from target_commands import Commands
from target_patterns import Patterns
from target_payloads import Payloads
from target_records import Records
from target_wires import Http, Resp

TARGETS: dict[str, Callable[[Path], Target]] = {
    "commands": Commands,
    "restore": Payloads,
    "patterns": Patterns,
    "blocks": Blocks,
    "records": Records,
    "resp": Resp,
    "http": Http,
}
