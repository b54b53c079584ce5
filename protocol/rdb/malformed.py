"""The error for bytes that are not in the format they claim to be in: a dumped value, or a part of one."""

from __future__ import annotations


class Malformed(Exception):
    """The peer's fault: these bytes cannot be read, or would be more than anybody should hold."""
