"""What a connection was told, in a form in which two servers can be compared.

Compared byte by byte, in order, but for what no two servers can have in common:

 - the order of hash tables: an array of nothing but names is sorted (PUBSUB CHANNELS); in a run of pmessages of one
   message the patterns are sorted; where UNSUBSCRIBE or SUNSUBSCRIBE had no names, the names in their run of
   confirmations are sorted (their counts stay where they are);
 - ids, addresses, times and memory in CLIENT INFO, HELLO and MONITOR; what COMMAND COUNT counts.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TypeAlias

Frame: TypeAlias = tuple[bytes, bytes | list["Frame"]]
"""The type byte and what follows: a line, a payload, or the elements."""

_AGGREGATES = b"*~>%"
_OWN_FIELDS = re.compile(
    rb" ?\b(id|addr|laddr|fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem|events|redir|"
    rb"lib-name|lib-ver)=\S*"
)
_MONITORED = re.compile(rb"^\d+\.\d{6} \[(\d+) [^]]*\]")
_MONITORED_CONTROL = b'"PING" "control"'
_FORGOTTEN_ORDER = (b"unsubscribe", b"sunsubscribe")


def frames(data: bytes) -> list[Frame]:
    """The frames of a transcript. Inside EXEC some commands answer nothing, or twice: where an array so promises more
    than there is, its header stands alone, and its elements follow as frames of their own."""
    found: list[Frame] = []
    at = 0
    while at < len(data):
        try:
            frame, at = _frame(data, at)
        except ValueError:
            end = data.index(b"\r\n", at)
            frame, at = (data[at : at + 1], data[at + 1 : end]), end + 2
        found.append(frame)
    return found


def _frame(data: bytes, at: int) -> tuple[Frame, int]:
    end = data.index(b"\r\n", at)
    kind, line, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind in b"$=" and line != b"-1":
        payload = data[at : at + int(line)]
        return (kind, payload), at + int(line) + 2
    if kind in _AGGREGATES and line != b"-1":
        elements = []
        for _ in range(int(line) * (2 if kind == b"%" else 1)):
            element, at = _frame(data, at)
            elements.append(element)
        return (kind, elements), at
    return (kind, line), at


def comparable(data: bytes, order_of_names_is_lost: bool) -> list[Frame]:
    """A transcript without what may differ. Names in no order: a bare UNSUBSCRIBE or SUNSUBSCRIBE was sent."""
    told = [_without_accidents(frame) for frame in frames(data) if _MONITORED_CONTROL not in frame[1]]
    told = _sort_patterns(told)
    return _sort_names(told) if order_of_names_is_lost else told


def _without_accidents(frame: Frame) -> Frame:
    kind, content = frame
    if isinstance(content, list):
        elements = [_without_accidents(element) for element in content]
        if kind == b"*" and all(element[0] == b"$" for element in elements) and not _is_message(elements):
            elements.sort()
        for at, element in enumerate(elements[:-1]):
            if element == (b"$", b"id"):
                elements[at + 1] = (b":", b"ID")
        return kind, elements
    if kind in b"$=" and b"laddr=" in content:
        return kind, _OWN_FIELDS.sub(b"", content)
    if kind == b"+":
        return kind, _MONITORED.sub(rb"TIME [\1 ADDRESS]", content)
    return frame


def _is_message(elements: list[Frame]) -> bool:
    return bool(elements) and elements[0][1] in (b"message", b"pmessage", b"smessage", b"pong")


def _message_of_pattern(frame: Frame) -> object:
    content = frame[1]
    if isinstance(content, list) and len(content) == 4 and content[0][1] == b"pmessage":
        return repr(content[2:])
    return None


def _sort_patterns(told: list[Frame]) -> list[Frame]:
    result: list[Frame] = []
    for same, grouped in groupby(told, _message_of_pattern):
        run = list(grouped)
        result += run if same is None else sorted(run)
    return result


def _sort_names(told: list[Frame]) -> list[Frame]:
    result: list[Frame] = []
    for word, grouped in groupby(told, _unsubscribed):
        run = list(grouped)
        if word is not None:
            names = sorted((element[1][1] for element in run), key=repr)  # type: ignore[arg-type]
            run = [(kind, [content[0], name, content[2]]) for (kind, content), name in zip(run, names, strict=True)]  # type: ignore[list-item]
        result += run
    return result


def _unsubscribed(frame: Frame) -> object:
    content = frame[1]
    if isinstance(content, list) and len(content) == 3 and content[0][1] in _FORGOTTEN_ORDER:
        return content[0][1]
    return None
