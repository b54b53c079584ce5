"""Importing this module fills the command table: every module of the package is imported."""

from __future__ import annotations

import importlib
import pkgutil

import rlite_pubsub.commands

for _module in pkgutil.iter_modules(rlite_pubsub.commands.__path__):
    if _module.name != "all":
        importlib.import_module(f"rlite_pubsub.commands.{_module.name}")
