"""A user: whether it may log in, and with which passwords. Never changed, only replaced, so that a rule that is refused
leaves nothing behind.

There is one user, `default`, who may do everything; rules that would take something away from it are refused by name.
Passwords are kept as SHA-256 only.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, replace

from rlite_pubsub.commands.categories import CATEGORIES
from rlite_pubsub.commands.table import TABLE
from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.protocol.replies import Reply, Set

_ALL_KEYS, _ALL_CHANNELS, _ALL_COMMANDS = b"~*", b"&*", b"+@all"

_HASH = re.compile(rb"[0-9a-f]{64}")
_NO_CHANGE = frozenset(
    (b"", b"allkeys", _ALL_KEYS, b"allchannels", _ALL_CHANNELS, b"allcommands", _ALL_COMMANDS, b"clearselectors")
)
"""What grants all that everybody has already."""
_RESTRICTIONS = frozenset(
    (b"resetkeys", b"resetchannels", b"nocommands", b"reset", b"skip-sanitize-payload", b"sanitize-payload")
)

_UNKNOWN_COMMAND = b"Unknown command or category name in ACL"
_BAD_HASH = b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
_NO_SUCH_PASSWORD = b"The password you are trying to remove from the user does not exist"
_USELESS_PATTERN = (
    b"Adding a pattern after the * pattern (or the '%b' flag) is not valid and does not have any effect. "
    b"Try '%b' to start with an empty list of %b"
)
_UNSUPPORTED = b"Restricting what a user may do is not supported by this server"


class RuleError(Exception):
    """A rule of ACL SETUSER is refused; `text` says why."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode())
        self.text = text


@dataclass(frozen=True, slots=True)
class User:
    """One user's name and credentials."""

    name: bytes
    enabled: bool = True
    no_password: bool = True
    """Every password will do."""
    hashes: tuple[bytes, ...] = ()
    """Of the passwords, in hexadecimal, in the order in which they were added."""

    @property
    def is_open(self) -> bool:
        """Whether one is this user without logging in."""
        return self.enabled and self.no_password

    @property
    def line(self) -> bytes:
        """As ACL LIST and the ACL file say it."""
        passwords = [b"#" + known for known in self.hashes]
        return b" ".join([self.name, *self._flags, *passwords, _ALL_KEYS, _ALL_CHANNELS, _ALL_COMMANDS])

    @property
    def described(self) -> Reply:
        """As ACL GETUSER says it."""
        return {
            b"flags": Set(self._flags),
            b"passwords": list(self.hashes),
            b"commands": _ALL_COMMANDS,
            b"keys": _ALL_KEYS,
            b"channels": _ALL_CHANNELS,
            b"selectors": [],
        }

    @property
    def _flags(self) -> list[bytes]:
        return [b"on" if self.enabled else b"off", *([b"nopass"] if self.no_password else [])]

    def admits(self, password: bytes) -> bool:
        """Whether this password lets one in. How long it takes does not depend on how nearly it does."""
        if not self.enabled:
            return False
        if self.no_password:
            return True
        given = _hash(password)
        matches = [hmac.compare_digest(given, known) for known in self.hashes]
        return any(matches)

    def with_password(self, password: bytes) -> User:
        """This user with this password and no other; with none, where it is empty."""
        return replace(self, no_password=not password, hashes=(_hash(password),) if password else ())

    def with_rule(self, rule: bytes) -> User:
        """This user after one rule of ACL SETUSER. Raises RuleError."""
        word, sign = rule.lower(), rule[:1]
        if word in (b"on", b"off"):
            return replace(self, enabled=word == b"on")
        if word in (b"nopass", b"resetpass"):
            return replace(self, no_password=word == b"nopass", hashes=())
        if sign in (b">", b"#"):
            added = _given_hash(rule)
            hashes = self.hashes if added in self.hashes else (*self.hashes, added)
            return replace(self, no_password=False, hashes=hashes)
        if sign in (b"<", b"!"):
            removed = _given_hash(rule)
            if removed not in self.hashes:
                raise RuleError(_NO_SUCH_PASSWORD)
            return replace(self, hashes=tuple(known for known in self.hashes if known != removed))
        if word not in _NO_CHANGE:
            _check_grant(rule)
        return self


def _hash(password: bytes) -> bytes:
    return hashlib.sha256(password).hexdigest().encode()


def _given_hash(rule: bytes) -> bytes:
    if rule[:1] in (b">", b"<"):
        return _hash(rule[1:])
    if _HASH.fullmatch(rule[1:]) is None:
        raise RuleError(_BAD_HASH)
    return rule[1:]


def _check_grant(rule: bytes) -> None:
    """Whether a rule only grants what everybody has already. Raises RuleError."""
    word, sign = rule.lower(), rule[:1]
    if sign == b"~":
        raise RuleError(_USELESS_PATTERN % (b"allkeys", b"resetkeys", b"patterns"))
    if sign == b"%" and re.fullmatch(rb"%(r|w|rw|wr)~.*", word, re.DOTALL):
        raise RuleError(_USELESS_PATTERN % (b"allkeys", b"resetkeys", b"patterns"))
    if sign == b"&":
        raise RuleError(_USELESS_PATTERN % (b"allchannels", b"resetchannels", b"channels"))
    if word[:2] in (b"+@", b"-@"):
        if word[2:] != b"all" and word[2:].decode("latin-1") not in CATEGORIES:
            raise RuleError(_UNKNOWN_COMMAND)
    elif sign in (b"+", b"-"):
        if TABLE.find_full(word[1:]) is None:
            raise RuleError(_UNKNOWN_COMMAND)
    elif word not in _RESTRICTIONS and not (sign == b"(" and rule[-1:] == b")"):
        raise RuleError(b"Syntax error")
    if sign != b"+":
        raise RuleError(_UNSUPPORTED)


def whole_rules(words: list[bytes]) -> list[bytes]:
    """A selector in parentheses may stretch over several words: they are one rule. Raises RuleError."""
    rules: list[bytes] = []
    rest = iter(words)
    for word in rest:
        rule = word
        if word[:1] == b"(":
            while rule[-1:] != b")":
                more = next(rest, None)
                if more is None:
                    raise RuleError(b"Unmatched parenthesis in acl selector starting at '%b'." % c_string(word))
                rule += b" " + more
        rules.append(rule)
    return rules
