"""A page of `rlite-pubsub top` as plain lines, cut to a screen where there is one."""

from __future__ import annotations

from rlite_pubsub.cli_top_tables import Page, Table, bytes_text, count_text, seconds_text


def head_lines(page: Page) -> list[str]:
    """What there is to say of a server as a whole."""
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
    gauges = [
        f"{count_text(about['connected_clients'])} sessions ({count_text(about['subscribed_sessions'])} subscribed)",
        f"{bytes_text(about['used_memory'])} memory",
        f"{bytes_text(about['spilled_bytes'])} spilled",
        f"{count_text(about['gaps'])} gaps",
        f"up {seconds_text(about['uptime_in_seconds'])}",
    ]
    return [", ".join([*rates, *traffic]), ", ".join(gauges)]


def table_lines(table: Table) -> list[str]:
    """With its heads, and what was left out."""
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


def page_lines(page: Page) -> list[str]:
    """All of it."""
    lines = head_lines(page)
    for table in page.tables:
        lines += ["", *table_lines(table)]
    return lines


def cut(page: Page, lines: int) -> Page:
    """So that it has at most so many lines, each table its share."""
    left, rows = lines - len(head_lines(page)) - 3 * len(page.tables), {}
    by_length = sorted(page.tables, key=lambda table: len(table.rows))
    for number, table in enumerate(by_length):
        rows[table.title] = max(0, min(len(table.rows), left // (len(by_length) - number)))
        left -= rows[table.title]
    tables = []
    for table in page.tables:
        kept = rows[table.title]
        tables.append(table.with_rows(table.rows[:kept], table.left_out + len(table.rows) - kept))
    return Page(page.summary, tables)
