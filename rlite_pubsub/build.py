"""How this package was built: compiled by mypyc, or as pure Python."""

from __future__ import annotations


def is_compiled() -> bool:
    """Whether the hot modules are compiled. setup.py names them, this one among them."""
    return not __file__.endswith(".py")
