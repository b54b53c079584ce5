"""Where the pages of `rlite-pubsub top` go: rich's live screen, a plain one where rich is not installed, or, where
output is no terminal, one page after the other."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol

from rlite_pubsub.cli_top_tables import Page
from rlite_pubsub.cli_top_text import cut, head_lines, page_lines

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


class Screen(Protocol):
    """A context; what it has made of the terminal is undone at its end."""

    def __enter__(self) -> Screen: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def draw(self, page: Page, foot: str) -> None:
        """Show this page, and nothing else."""


def screen() -> Screen:
    """The best there is."""
    if not sys.stdout.isatty():
        return Paper()
    try:
        return RichScreen()
    except ImportError:
        return PlainScreen()


class Paper:
    """No terminal: pages follow each other."""

    def __enter__(self) -> Paper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def draw(self, page: Page, foot: str) -> None:
        print("\n".join([*page_lines(page), ""]), flush=True)


class PlainScreen:
    """A terminal that knows the usual escape sequences."""

    def __enter__(self) -> PlainScreen:
        self._write(_ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._write(_LEAVE)

    def draw(self, page: Page, foot: str) -> None:
        width, height = shutil.get_terminal_size()
        lines = [*page_lines(cut(page, height - 2)), "", foot][:height]
        self._write(_HOME + "\r\n".join([line[:width] + _END_OF_LINE for line in lines]) + _REST)

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class RichScreen:
    """Raises ImportError where there is no rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False, redirect_stderr=False)
        self._stack = ExitStack()

    def __enter__(self) -> RichScreen:
        self._stack.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stack.close()

    def draw(self, page: Page, foot: str) -> None:
        from rich.console import Group
        from rich.text import Text

        parts: list[Any] = [Text(line, style="bold", no_wrap=True, overflow="ellipsis") for line in head_lines(page)]
        for table in cut(page, self._console.height - 2).tables:
            parts += [Text(""), _rich_table(table)]
            if table.left_out:
                parts.append(Text(f"... and {table.left_out} more", style="dim"))
        parts += [Text(""), Text(foot, style="reverse", no_wrap=True, overflow="ellipsis")]
        self._live.update(Group(*parts), refresh=True)


def _rich_table(table: Any) -> Any:
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold cyan")
    for column in table.columns:
        drawn.add_column(column.head, justify="right" if column.is_number else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*[Text(column.show(row[column.key])) for column in table.columns])
    return drawn
