"""The file of users: a line each, `user NAME rule …`, as ACL LIST shows them. It is read whole or not at all, with
every fault named in one line; it is written whole or not at all, and only its owner may read a new one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlite_pubsub.engine.access.selector import UNKNOWN_COMMAND, RuleError, Selector, has_white
from rlite_pubsub.engine.access.user import User, whole_rules
from rlite_pubsub.engine.settings.config_file import replace_file
from rlite_pubsub.protocol.errors import c_string

log = logging.getLogger("rlite_pubsub")

_BLANKS = b" \t\r\n"
_NOTHING_CHANGED = b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed"


class UsersFileError(Exception):
    """The file of users cannot be used or written; `text` says why."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("utf-8", "replace"))
        self.text = text


def load(path: bytes, fresh: Selector) -> dict[bytes, User]:
    """Read the users of a file, by name; selectors begin as `fresh`. Raises UsersFileError."""
    try:
        text = Path(os.fsdecode(path)).read_bytes()
    except OSError as failure:
        raise UsersFileError(
            b"Error loading ACLs, opening file '%b': %b" % (path, (failure.strerror or "").encode())
        ) from failure
    users: dict[bytes, User] = {}
    faults = b""
    for number, line in enumerate(text.split(b"\n"), 1):
        line = line.strip(_BLANKS)
        if line:
            faults += _read_line(line, b"%b:%d" % (path, number), number, users, fresh)
    if faults:
        raise UsersFileError(faults + _NOTHING_CHANGED)
    return users


def of_lines(lines: Iterable[bytes], fresh: Selector) -> dict[bytes, User]:
    """Return the users of these lines, by name. A line with a fault (a later version knows more rules) is logged, and
    its user is left out."""
    users: dict[bytes, User] = {}
    for number, line in enumerate(lines, 1):
        faults = _read_line(line, b"the store", number, users, fresh)
        if faults:
            log.warning("The store has a user that is not valid: %s", faults.decode("utf-8", "replace"))
    return users


def _read_line(line: bytes, place: bytes, number: int, users: dict[bytes, User], fresh: Selector) -> bytes:
    """Add the user of a line; return what is wrong with it."""
    words = line.split(b" ")
    if words[0] != b"user" or len(words) < 2:
        return b"%b should start with user keyword followed by the username. " % place
    name = words[1]
    if has_white(name):
        return b"'%b: username '%b' contains invalid characters. " % (place, c_string(name))
    if name in users:
        return b"WARNING: Duplicate user '%b' found on line %d. " % (name, number)
    user = users[name] = User(name, root=fresh)
    try:
        rules = whole_rules(words[2:])
    except RuleError:
        return b"%b: Unmatched parenthesis in selector definition." % place
    rules = [rule.strip(b"\t\r\n") for rule in rules]
    try:
        users[name] = user.with_rules(rules, fresh)
        return b""
    except RuleError:
        pass  # they are applied one by one, to tell of all faults
    faults, is_told = b"", False
    for rule in rules:
        try:
            user = users[name] = user.with_rule(rule, fresh)
        except RuleError as refusal:
            if refusal.text == UNKNOWN_COMMAND:
                faults += b"%b: Error in applying operation '%b': %b. " % (place, rule, refusal.text)
            elif not is_told:  # of the others only the first: it may hold a password, and spoils those after it
                faults += b"%b: %b. " % (place, refusal.text)
                is_told = True
    return faults


def save(path: bytes, users: list[User]) -> None:
    """Write the file. Raises OSError."""
    replace_file(Path(os.path.realpath(os.fsdecode(path))), b"".join([user.line + b"\n" for user in users]))


def configured(lines: Mapping[bytes, list[bytes]], default: User, fresh: Selector) -> list[User]:
    """Return the users of a configuration file's `user` lines, by name. Raises UsersFileError."""
    found = []
    for name, rules in lines.items():
        if has_white(name):
            raise UsersFileError(b"Spaces not allowed in ACL usernames")
        user = default.with_rule(b"reset", fresh) if name == default.name else User(name, root=fresh)
        try:
            found.append(user.with_rules(rules, fresh))
        except RuleError as refusal:
            raise UsersFileError(
                b"Error loading ACL rule '%b' for the user named '%b': %b" % (refusal.rule or b"", name, refusal.text)
            ) from refusal
    return found
