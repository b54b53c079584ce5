"""Importing this module fills the command table: every module of the package is imported."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

for _module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."):
    if _module.name != __name__:
        importlib.import_module(_module.name)
