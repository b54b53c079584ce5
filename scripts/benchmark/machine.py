"""Where and when a table was made."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

from . import cores


def description() -> dict[str, str]:
    return {
        "date": time.strftime("%Y-%m-%d %H:%M %Z"),
        "cpu": _cpu_model(),
        "cores": f"{os.cpu_count()}, "
        + ("server and generator on one each" if cores.separate() else "shared by server and generator"),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python (generator)": f"{sys.implementation.name} {platform.python_version()}",
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
