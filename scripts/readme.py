"""Writes the generated tables of README.md anew: commands, options and, with `--bench FILE.md`, the benchmark's.

`--check` writes nothing and fails if the file is not what it should be.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def section(text: str, name: str, content: str) -> str:
    """`text` with the part between the markers of `name` replaced."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"README.md has no markers for {name}")
    return pattern.sub(lambda match: match[1] + content.strip("\n") + "\n" + match[2], text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--bench", type=Path, help="a table that scripts/bench printed")
    arguments = parser.parse_args()

    import rlite_pubsub.commands.all  # noqa: F401  fills the command table
    from rlite_pubsub.commands import tables
    from rlite_pubsub.engine.settings import directives

    old = README.read_text()
    new = section(old, "commands", tables.tables())
    new = section(new, "options", directives.markdown())
    if arguments.bench:
        new = section(new, "bench", arguments.bench.read_text())
    if arguments.check:
        if new != old:
            print("README.md is not up to date: run scripts/readme", file=sys.stderr)
        return int(new != old)
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
