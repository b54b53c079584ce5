"""Importing this module fills the command table: every module of the package is imported."""

from __future__ import annotations

import importlib
import pkgutil

import rlite_pubsub.commands

for _module in pkgutil.walk_packages(rlite_pubsub.commands.__path__, "rlite_pubsub.commands."):
    if _module.name != __name__:
        importlib.import_module(_module.name)
