"""The answer of COMMAND DOCS, for help, hints and completion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rlite_pubsub.protocol.replies import Error, Map, Reply


@dataclass(frozen=True)
class ManualEntry:
    """A command, or a command with its subcommand."""

    name: str
    """In capitals, with a blank before a subcommand."""
    syntax: str
    """Of its arguments."""
    summary: str
    since: str
    group: str
    tokens: tuple[str, ...] = field(repr=False)
    """Words that are said as they are."""


class Manual:
    """A server's documentation of its commands."""

    def __init__(self, docs: Reply) -> None:
        """`docs`: the answer of COMMAND DOCS. One that is an error makes an empty manual."""
        found = [] if isinstance(docs, Error) else _pairs(docs)
        self.entries = {each.name: each for name, about in found for each in _entries(_text(name), about)}
        self.groups = sorted({each.group for each in self.entries.values()})

    def entry_of(self, words: list[str]) -> ManualEntry | None:
        """Return the command that these words begin with."""
        for size in (2, 1):
            found = self.entries.get(" ".join(words[:size]).upper())
            if found is not None and len(words) >= size:
                return found
        return None

    def completions(self, words: list[str], last: str) -> list[str]:
        """Return the completions of the word under the cursor, in its case; `words` stand before it."""
        if words and words[0].lower() in ("help", "?"):
            known = [name for name in self.entries] + [f"@{group}" for group in self.groups]
            begun = " ".join([*words[1:], last]).lower()
            skipped = len(begun) - len(last)
            return [name[skipped:] for name in known if name.lower().startswith(begun)]
        typed = " ".join([*words, last]).upper()
        skipped = len(typed) - len(last)
        names = {name[skipped:].partition(" ")[0] for name in self.entries if name.startswith(typed)}
        entry = self.entry_of(words)
        if entry is not None:
            names.update(token for token in entry.tokens if token.startswith(last.upper()))
        is_lower = last.islower() or (not last and bool(words) and words[0].islower())
        return sorted(name.lower() if is_lower else name for name in names if name)

    def about(self, words: list[str]) -> list[ManualEntry]:
        """Return what `help` shows: a group's commands if the word begins with @, or those that begin with these
        words."""
        if words[0].startswith("@"):
            return [each for each in self.entries.values() if each.group == words[0][1:].lower()]
        wanted = " ".join(words).upper()
        return [each for name, each in self.entries.items() if name == wanted or name.startswith(f"{wanted} ")]


def _entries(name: str, docs: Reply) -> Iterator[ManualEntry]:
    about = {_text(key): value for key, value in _pairs(docs)}
    said = {key: _text(about.get(key, b"")) for key in ("summary", "since", "group")}
    arguments = [_argument(each) for each in about.get("arguments") or ()]
    subcommands = _pairs(about.get("subcommands") or [])
    if not subcommands or arguments:
        tokens = tuple(sorted({token for each in arguments for token in _tokens(each)}))
        syntax = " ".join(_spelled(each) for each in arguments)
        yield ManualEntry(name.upper().replace("|", " "), syntax, said["summary"], said["since"], said["group"], tokens)
    for sub, more in subcommands:
        yield from _entries(_text(sub), more)


# -- arguments, as COMMAND DOCS has them


def _argument(told: Reply) -> dict[str, Any]:
    about = {_text(key): value for key, value in _pairs(told)}
    about["flags"] = {_text(flag) for flag in about.get("flags") or ()}
    about["arguments"] = [_argument(each) for each in about.get("arguments") or ()]
    return about


def _spelled(argument: dict[str, Any]) -> str:
    """Return the grammar as redis.io spells it."""
    kind, flags, token = _text(argument["type"]), argument["flags"], argument.get("token")
    if kind == "pure-token":
        spelled = _text(token) or '""'
    else:
        if kind == "block":
            inner = " ".join(map(_spelled, argument["arguments"]))
        elif kind == "oneof":
            inner = "|".join(map(_spelled, argument["arguments"]))
            if "optional" not in flags and len(argument["arguments"]) > 1:
                inner = f"<{inner}>"
        else:
            inner = _text(argument.get("display_text") or argument["name"])
        spelled = f"{_text(token)} {inner}" if token is not None else inner
        if "multiple" in flags:
            again = spelled if "multiple_token" in flags else inner
            spelled = f"{spelled} [{again} ...]"
    return f"[{spelled}]" if "optional" in flags else spelled


def _tokens(argument: dict[str, Any]) -> Iterator[str]:
    if argument.get("token"):
        yield _text(argument["token"]).upper()
    for each in argument["arguments"]:
        yield from _tokens(each)


def _pairs(reply: Reply) -> list[tuple[Reply, Reply]]:
    """Return a map of either protocol."""
    return list(reply) if isinstance(reply, Map) else list(zip(reply[::2], reply[1::2], strict=True))


def _text(value: Reply) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value or "")
