"""Commands that pages name in their sentences are commands that there are."""

from __future__ import annotations

import re
import shlex

import pytest
from blocks import ROOT, pages

from rlite_pubsub.cli.command_line import SUBCOMMANDS, parser_of

PAGES = [*pages(), *(ROOT / name for name in ("CONTRIBUTING.md", "llms.txt", "examples/README.md"))]
_FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"`rlite-pubsub ([^`]+)`")
_UNFINISHED = re.compile(r"the following arguments are required|expected (one|at least one) argument")
"""A sentence may name a command without all that it takes."""


def _commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        prose = _FENCED.sub("", page.read_text())
        found += [(str(page.relative_to(ROOT)), " ".join(words.split())) for words in _NAMED.findall(prose)]
    return sorted(set(found))


def test_command_that_a_page_names_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for page, words in _commands():
        first, *rest = shlex.split(words.replace("…", " "))
        if first.startswith("-") or first == "serve" or not rest or "--help" in rest:
            if not first.startswith("-") and first not in SUBCOMMANDS:
                wrong.append(f"{page}: there is no command {first}")
            continue
        try:
            parser_of([first]).parse_args([first, *rest])
        except SystemExit:
            said = capsys.readouterr().err
            if not _UNFINISHED.search(said):
                wrong.append(f"{page}: rlite-pubsub {words}: {said}")
    assert wrong == []


def test_directive_that_a_page_gives_to_serve_is_one() -> None:
    known = set(re.findall(r"^\| `([a-z0-9-]+)`", (ROOT / "docs/reference/directives.md").read_text(), re.MULTILINE))
    flags = [
        (page, flag)
        for page, words in _commands()
        if words.startswith("serve")
        for flag in re.findall(r"--([a-z][a-z0-9-]*)", words)
    ]
    assert flags and [f"{page}: --{flag}" for page, flag in flags if flag not in known | {"help"}] == []
