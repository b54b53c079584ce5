"""What is tested here needs frameworks, which `scripts/test --frameworks` installs: elsewhere it is left out."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDED = {
    "test_channels.py": ("channels", "msgpack"),
}
collect_ignore = [file for file, libraries in _NEEDED.items() if not all(map(find_spec, libraries))]
