"""The build of this package: compiled by mypyc, or pure Python."""

from __future__ import annotations


def is_compiled() -> bool:
    """Return whether the hot modules are compiled. setup.py names them, this one among them."""
    return not __file__.endswith(".py")
