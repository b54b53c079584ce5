"""The version of rlite-pubsub, for modules that need nothing else of the package."""

from __future__ import annotations

__version__ = "1.0.0"
