"""Writes the generated parts of the documentation from the declarations in the code.

`docs/cli.md`, `docs/spark.md` and `docs/reference/commands.md`, `directives.md`, `http-api.md` and `python.md` each
hold one generated part between markers, and `docs/benchmarks.md` holds the table that `--bench FILE.md` names.
`--check` writes nothing and fails if a page is out of date.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import cli_reference
import http_reference
import python_reference

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs"


def section(page: Path, name: str, content: str) -> str:
    """The page's text with the part between the markers of `name` replaced."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    text = page.read_text()
    if not pattern.search(text):
        raise SystemExit(f"{page} has no markers for {name}")
    return pattern.sub(lambda match: match[1] + content.strip("\n") + "\n" + match[2], text)


def openapi() -> dict[str, Any]:
    """The document that a server with HTTP answers at /openapi.json."""
    from rlite_pubsub import Server

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with Server(http_port=port), urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--bench", type=Path, help="a table that scripts/bench printed")
    arguments = parser.parse_args()

    import rlite_pubsub.commands.all  # noqa: F401  fills the command table
    from rlite_pubsub.commands import tables
    from rlite_pubsub.engine.settings import directives
    from rlite_pubsub.pipeline import text_types

    parts = [
        (PAGES / "cli.md", "cli", cli_reference.markdown()),
        (PAGES / "reference/commands.md", "commands", tables.tables()),
        (PAGES / "reference/directives.md", "directives", directives.markdown()),
        (PAGES / "reference/http-api.md", "http-api", http_reference.markdown(openapi())),
        (PAGES / "reference/python.md", "python", python_reference.markdown()),
        (PAGES / "spark.md", "text-types", text_types.page()),
    ]
    if arguments.bench:
        parts.append((PAGES / "benchmarks.md", "bench", arguments.bench.read_text()))
    outdated = False
    for page, name, content in parts:
        new = section(page, name, content)
        if new == page.read_text():
            continue
        if arguments.check:
            print(f"{page.relative_to(ROOT)} is not up to date: run scripts/reference", file=sys.stderr)
            outdated = True
        else:
            page.write_text(new)
    return int(outdated)


if __name__ == "__main__":
    sys.exit(main())
