"""The command that installs what is missing, as it works here: with this environment's Python.

The package that is installed satisfies its own name, wherever it came from: pip asks no index for it, and compiles
nothing.
A checkout that runs in place is not installed, and is named by its path.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

PROJECT = "rlite-pubsub"


def missing(what: str, extra: str) -> str:
    """Return the message for an extra that is not installed."""
    return f"{what} needs the extra `{extra}`, which is not installed here: {how_to_install(extra)}"


def how_to_install(extra: str) -> str:
    """Return a command for a shell."""
    python = shlex.quote(sys.executable or "python3")
    pip = f"{python} -m pip" if importlib.util.find_spec("pip") is not None else f"pip --python {python}"
    return f"{pip} install {_source(extra)}"


def _source(extra: str) -> str:
    checkout = Path(__file__).absolute().parents[1]
    if (checkout / "setup.cfg").exists():
        return "--editable " + shlex.quote(f"{checkout}[{extra}]")
    return shlex.quote(f"{PROJECT}[{extra}]")
