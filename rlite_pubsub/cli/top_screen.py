"""The output of `rlite-pubsub top`: rich's live screen, a plain one if rich is not installed or, if the output is not a
terminal, one page after the other."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol

from rlite_pubsub.cli.text import escaped
from rlite_pubsub.cli.top_tables import TopPage, TopTable, bytes_text, count_text, seconds_text
from rlite_pubsub.engine.stats.warnings import ADVICE, NOTE

# -- A page of `rlite-pubsub top` as plain lines, cut to a screen where there is one.


def head_lines(page: TopPage) -> list[str]:
    """Return the lines on a server as a whole."""
    about = page.summary
    if about["process_id"] is None:
        return ["A store's folder, without a server's counters."]
    rates = [
        f"{count_text(about[f'{name}_per_s'])} {what}/s"
        for name, what in (
            ("messages_published", "published"),
            ("messages_delivered", "delivered"),
            ("total_commands_processed", "commands"),
        )
    ]
    traffic = [f"{bytes_text(about[f'total_net_{way}put_bytes_per_s'])}/s {way}" for way in ("in", "out")]
    store_bytes = about["store_disk_bytes"] or about["data_disk_bytes"]  # of an older server
    gauges = [
        f"{count_text(about['connected_clients'])} sessions ({count_text(about['subscribed_sessions'])} subscribed)",
        f"{bytes_text(about['used_memory_private'])} memory",
        f"{bytes_text(store_bytes)} store, {bytes_text(about['filesystem_free_bytes'])} free on disk",
        f"{bytes_text(about['spilled_bytes'])} buffered to disk",
        f"{count_text(about['gaps'])} gaps",
        f"up {seconds_text(about['uptime_in_seconds'])}",
    ]
    return [", ".join([*rates, *traffic]), ", ".join(gauges), *_warning_lines(about["warnings"])]


MOST_WARNINGS = 3


def _warning_lines(warnings: list[dict[str, Any]]) -> list[str]:
    """Return the first of them, the worst first; names as they are shown elsewhere."""
    warnings = [each for each in warnings if each["severity"] != NOTE]
    lines = []
    for each in warnings[:MOST_WARNINGS]:
        about = " of ".join(escaped(part.encode()) for part in reversed(each["subject"]))
        advice = f" -> {ADVICE[each['code']]}" if each["code"] in ADVICE else ""
        lines.append(f"! {each['code']} {about}: {escaped(each['text'].encode())}{advice}")
    left = len(warnings) - MOST_WARNINGS
    return [*lines, f"! and {left} more warnings"] if left > 0 else lines


def table_lines(table: TopTable) -> list[str]:
    """Return the lines with their heads, and what was left out."""
    cells = [[column.show(row[column.key]) for column in table.columns] for row in table.rows]
    heads = [column.head for column in table.columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = []
    for row in [heads, *cells]:
        aligned = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    return lines + ([f"... and {table.left_out} more"] if table.left_out else [])


def page_lines(page: TopPage) -> list[str]:
    """Return all of it."""
    lines = head_lines(page)
    for table in page.tables:
        lines += ["", *table_lines(table)]
    return lines


FEWEST_TABLES, FEWEST_ROWS = 3, 3


def cut(page: TopPage, lines: int) -> TopPage:
    """Cut the page to at most this many lines, each table having its share. If that is little, the last tables are left
    out."""
    room, tables_shown = lines - len(head_lines(page)), list(page.tables)
    while len(tables_shown) > FEWEST_TABLES and room < len(tables_shown) * (3 + FEWEST_ROWS):
        tables_shown.pop()
    page = TopPage(page.summary, tables_shown)
    left, rows = room - 3 * len(page.tables), {}
    by_length = sorted(page.tables, key=lambda table: len(table.rows))
    for number, table in enumerate(by_length):
        rows[table.title] = max(0, min(len(table.rows), left // (len(by_length) - number)))
        left -= rows[table.title]
    tables = []
    for table in page.tables:
        kept = rows[table.title]
        tables.append(table.with_rows(table.rows[:kept], table.left_out + len(table.rows) - kept))
    return TopPage(page.summary, tables)


_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


class Screen(Protocol):
    """A context; what it has made of the terminal is undone at its end."""

    def __enter__(self) -> Screen: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def draw(self, page: TopPage, foot: str) -> None:
        """Show this page, and nothing else."""


def screen() -> Screen:
    """Return the best there is."""
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

    def draw(self, page: TopPage, foot: str) -> None:
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

    def draw(self, page: TopPage, foot: str) -> None:
        width, height = shutil.get_terminal_size()
        lines = [*page_lines(cut(page, height - 2)), "", foot][:height]
        self._write(_HOME + "\r\n".join([line[:width] + _END_OF_LINE for line in lines]) + _REST)

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class RichScreen:
    """Shows the page with rich. Raises ImportError without it."""

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

    def draw(self, page: TopPage, foot: str) -> None:
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
