"""A report of `doctor`: a verdict first, then what is wrong, and then figures with their units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rlite_pubsub.cli.text import escaped, shown_bytes
from rlite_pubsub.engine.stats.warnings import ADVICE, CRITICAL, NOTE


class Finding(NamedTuple):
    """One thing that is wrong, or was within the last hour."""

    code: str
    severity: str
    subject: tuple[bytes, ...]
    text: str


def told(faults: list[str], findings: list[Finding], figures: Iterable[str]) -> int:
    """Print the report; 1 if something is wrong."""
    critical = [each for each in findings if each.severity == CRITICAL]
    warnings = [each for each in findings if each.severity not in (CRITICAL, NOTE)]
    wrong = len(faults) + len(critical)
    print(f"verdict    {_verdict(wrong, len(warnings))}")
    for fault in faults:
        print(f"fault      {fault}")
    notes = [each for each in findings if each.severity == NOTE]
    for name, some in (("fault", critical), ("warning", warnings), ("note", notes)):
        for each in some:
            print(f"{name:10} {_said(each)}")
            if each.code in ADVICE:
                print(f"{'':10} {ADVICE[each.code]}")
    for line in figures:
        print(line)
    return 1 if wrong else 0


def _verdict(wrong: int, warnings: int) -> str:
    if not wrong and not warnings:
        return "well: nothing is wrong"
    counts = (wrong, "fault"), (warnings, "warning")
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return f"{'something is wrong' if wrong else 'it works'}: {' and '.join(parts)}"


def _said(finding: Finding) -> str:
    about = " of ".join(escaped(part) for part in reversed(finding.subject) if part)
    return f"{finding.code}{f' {about}' if about else ''}: {escaped(finding.text.encode(errors='surrogateescape'))}"


def sizes_line(used: object, live: object, free: object, held: object, disk: object) -> str:
    """Return the sizes of one file."""
    sizes = used, live, free, held, disk
    words = [shown_bytes(each) if isinstance(each, int | float) else str(each) for each in sizes]
    return "{} in use ({} live, {} free, of which readers hold {}), {} on the disk".format(*words)
