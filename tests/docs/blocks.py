"""The blocks of code of README.md and docs/, in the order in which a reader meets them.

A page is one session of one reader, who starts in an empty folder and copies block after block:

- `python`: a program. `bash`: commands, one after the other. `console`: commands behind `$ `, and what they answer.
  `javascript`: a program for node. `html`: a file that a browser opens.
- A command that stays, as a server does, has a comment with the word "terminal": `# in a second terminal`. It stays
  until the page ends, or another command ends it (`redis-cli shutdown`). It is the last of its block: what a reader
  pastes behind it would be that command's input.
- A block whose first line is a comment with a file's name (`# tasks.py`) is saved under that name; of other languages
  (`ini`, `yaml`, …) that is all that is done with it.
- A `text` block that follows another block at once is what that prints (expected.py says what counts as the same).
- A block that cannot run here says so in its first line: `# not run here: needs a cluster`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
RUN = ("python", "bash", "console", "javascript", "html")
SAVED = ("ini", "yaml", "conf", "json", "toml")
PROSE = ("text", "lua")
_FENCE = re.compile(r"^( *)(`{3,})(.*)$")
_NOT_RUN = re.compile(r"^\W*not run here: (.+?)\W*$")
_FILE = re.compile(r"^(?:#|//|<!--) ?([\w.-]+\.\w+)(?: -->)?$")


class Skipped(Exception):
    """The block needs what this machine has not got."""


class Block(NamedTuple):
    """One block, and the page and line where it begins."""

    page: str
    line: int
    language: str
    text: str
    prints: str | None
    """The `text` block that follows at once."""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def obstacle(self) -> str | None:
        """Why it cannot run here, if it says so."""
        found = _NOT_RUN.match(self.text.partition("\n")[0])
        return found[1] if found else None

    @property
    def commands(self) -> list[str]:
        """Those of a shell's block."""
        return [command for command, _ in commands_of(self.text, self.language == "console")]

    @property
    def stays(self) -> bool:
        """Whether its last command stays. What the page says that this prints, it prints at first."""
        return self.language in ("bash", "console") and any(map(stays, self.commands))

    @property
    def file(self) -> str | None:
        """The name that it is saved under."""
        found = _FILE.match(self.text.partition("\n")[0])
        return found[1] if found else None


def pages() -> list[Path]:
    """The README and the pages below docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(path: Path) -> list[Block]:
    """All fenced blocks of a page. Raises ValueError for a fence that does not end."""
    page = str(path.relative_to(ROOT))
    found: list[Block] = []
    open_fence: tuple[str, str, str, int] | None = None
    lines: list[str] = []
    quiet_since_block = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if open_fence is not None:
            indent, ticks, language, begin = open_fence
            if fence and fence[2] == ticks and not fence[3].strip():
                text = "\n".join(one.removeprefix(indent) for one in lines) + "\n"
                if language == "text" and quiet_since_block and found and found[-1].prints is None:
                    found[-1] = found[-1]._replace(prints=text)
                else:
                    found.append(Block(page, begin, language, text, None))
                open_fence, quiet_since_block = None, True
            else:
                lines.append(line)
        elif fence:
            open_fence, lines = (fence[1], fence[2], fence[3].strip(), number), []
        elif line.strip():
            quiet_since_block = False
    if open_fence is not None:
        raise ValueError(f"{page}:{open_fence[3]}: the block does not end")
    return found


def indented_code(path: Path) -> list[int]:
    """Lines that Markdown shows as code without a fence: nobody knows what language they are in."""
    found, fenced, after_blank, in_list = [], False, True, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            if re.match(r"^\s*([-*]|\d+\.) ", line):
                in_list = True
            elif line and not line.startswith(" "):
                in_list = False
            if line.startswith("    ") and after_blank and not in_list:
                found.append(number)
            after_blank = not line.strip() or (bool(found) and found[-1] == number)
    return found


def commands_of(text: str, prompted: bool) -> Iterator[tuple[str, str | None]]:
    """Each command of a block, with what it is said to print; None if the page does not say."""
    command: list[str] = []
    answer: list[str] = []
    until: str | None = None
    for line in text.splitlines():
        begins_one = line.startswith("$ ") if prompted else bool(line.strip()) and not line.startswith("#")
        if command and (until is not None or command[-1].endswith("\\")):
            command.append(line.removeprefix("> ") if prompted else line)
            until = None if line.strip() == until else until
        elif begins_one:
            if command:
                yield "\n".join(command), "\n".join(answer) if answer else None
            command, answer = [line.removeprefix("$ ") if prompted else line], []
            here = re.search(r"<<-?\s*'?(\w+)'?", line)
            until = here[1] if here else None
        elif prompted:
            answer.append(line)
    if command:
        yield "\n".join(command), "\n".join(answer) if answer else None


def stays(command: str) -> bool:
    """Whether it has a terminal of its own."""
    return re.search(r"#.*\bterminal\b", command) is not None
