"""Which version of rlite-pubsub this is: for whoever tells it, and wants no more of the package."""

from __future__ import annotations

__version__ = "0.2.0"
