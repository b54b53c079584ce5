"""A Python process of an executor, which does task after task.

After each task Spark has it collect garbage, and it looks at all that was ever imported to find that none of it is:
20 ms, in which it could have read tens of thousands of entries. What is there when its first task begins stays, so it
is taken out of the collector's sight, once.
"""

from __future__ import annotations

import gc
from functools import lru_cache


@lru_cache(maxsize=1)
def settle() -> None:
    """Called by a task that has imported what it needs."""
    gc.freeze()
