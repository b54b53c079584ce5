"""`python -m rlite_pubsub.commands.tables`: the reference's tables of commands, in Markdown."""

from __future__ import annotations

import importlib

from rlite_pubsub.engine.table import TABLE, Command

_EXTENSION = " **(extension)**"


def tables() -> str:
    """One table for each group, by name; an extension is marked, a container shows its subcommands."""
    groups: dict[str, list[Command]] = {}
    for one in TABLE.commands.values():
        groups.setdefault(one.group, []).append(one)
    return "\n".join(_table(group, groups[group]) for group in sorted(groups))


def _table(group: str, commands: list[Command]) -> str:
    rows = "".join(_rows(one) for one in sorted(commands, key=lambda one: one.name))
    return f"## {group.capitalize()}\n\n| command | what it does | since |\n|---|---|---|\n{rows}"


def _rows(one: Command) -> str:
    own = _row(one) if one.handler is not None else ""
    return own + "".join(_row(child) for child in sorted(one.subcommands.values(), key=lambda child: child.name))


def _row(one: Command) -> str:
    name = one.name.decode().replace("|", " ").upper()
    mark = _EXTENSION if one.ours else ""
    summary = one.summary.replace("|", "\\|").rstrip(".")
    return f"| `{name}`{mark} | {summary} | {one.since} |\n"


def main() -> None:
    """Print the tables of all commands."""
    importlib.import_module("rlite_pubsub.commands.all")
    print(tables(), end="")


if __name__ == "__main__":
    main()
