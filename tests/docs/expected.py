"""What a page says that a command prints, compared with what it prints.

`...` stands for anything within a line, and alone on a line for any lines; a number of ten digits or more (ids, times),
a UUID, a date and a time of day stand for any of their kind. Blanks at the end of a line do not count.
"""

from __future__ import annotations

import re

_KINDS = (
    (re.compile(r"\d{10,}"), r"\d{10,}"),
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    (re.compile(r"\d{2}:\d{2}:\d{2}(?:\.\d+)?"), r"\d{2}:\d{2}:\d{2}(?:\.\d+)?"),
    (re.compile(r"20\d{2}-\d{2}-\d{2}"), r"20\d{2}-\d{2}-\d{2}"),
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def pattern(said: str) -> re.Pattern[str]:
    """What the page says, as a regular expression for all of the output."""
    parts = []
    for line in said.strip("\n").split("\n"):
        parts.append(r"(?:.*\n)*?" if line.strip() == "..." else _line(line.rstrip()) + r"[ \t]*\n")
    return re.compile("".join(parts))


def matches(said: str, printed: str) -> bool:
    """Whether that is what was printed."""
    return pattern(said).fullmatch(clean(printed)) is not None


def begins(said: str, printed: str) -> bool:
    """Whether that has been printed, whatever comes after it."""
    return pattern(said).match(clean(printed)) is not None


def clean(printed: str) -> str:
    """Without a terminal's escapes, and with a line's end at the end."""
    text = _ESCAPES.sub("", printed).replace("\r\n", "\n").strip("\n")
    return text + "\n"


def _line(text: str) -> str:
    return ".*".join(_with_kinds(part, 0) for part in text.split("..."))


def _with_kinds(text: str, kind: int) -> str:
    if kind == len(_KINDS):
        return re.escape(text)
    found, stands_for = _KINDS[kind]
    return stands_for.join(_with_kinds(part, kind + 1) for part in found.split(text))
