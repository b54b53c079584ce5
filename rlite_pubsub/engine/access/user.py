"""A user: whether it may log in, with which passwords, and what it may do. Never changed, only replaced, so that a rule
that is refused leaves nothing behind.

Passwords are kept as SHA-256 only.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rlite_pubsub.engine.access.acl_vocabulary import EVERYTHING
from rlite_pubsub.engine.access.selector import RuleError, Selector, SelectorDraft, commands_text, selector_text
from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.protocol.replies import Map, Reply, SetReply

_HASH = re.compile(rb"[0-9a-f]{64}")
_SANITIZING = (b"skip-sanitize-payload", b"sanitize-payload")

_BAD_HASH = b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
_NO_SUCH_PASSWORD = b"The password you are trying to remove from the user does not exist"


@dataclass(frozen=True, slots=True)
class User:
    """One user. A new one may do nothing, and cannot log in."""

    name: bytes
    enabled: bool = False
    no_password: bool = False
    """Any password is accepted."""
    hashes: tuple[bytes, ...] = ()
    """Of the passwords, in hexadecimal, in the order in which they were added."""
    root: Selector = Selector()
    selectors: tuple[Selector, ...] = ()
    """Those beside the root."""
    sanitizing: bytes = b""
    """The rule on RESTORE's payloads. It is kept and shown only: payloads are always checked here."""

    @property
    def is_open(self) -> bool:
        """True if clients are this user without logging in."""
        return self.enabled and self.no_password

    @property
    def is_unrestricted(self) -> bool:
        """True if it may do everything."""
        return any(selector.is_unrestricted for selector in self.all_selectors)

    @property
    def all_selectors(self) -> tuple[Selector, ...]:
        """All selectors, the root first."""
        return (self.root, *self.selectors)

    # -- in words

    @property
    def line(self) -> bytes:
        """The user as ACL LIST and the file of users show it."""
        passwords = [b"#" + known for known in self.hashes]
        others = [b"(" + selector_text(selector) + b")" for selector in self.selectors]
        return b" ".join([b"user", self.name, *self._flags, *passwords, selector_text(self.root), *others])

    @property
    def described(self) -> Reply:
        """The user as ACL GETUSER shows it."""
        return Map(
            [
                (b"flags", SetReply(self._flags)),
                (b"passwords", list(self.hashes)),
                *_described(self.root),
                (b"selectors", [Map(_described(selector)) for selector in self.selectors]),
            ]
        )

    @property
    def _flags(self) -> list[bytes]:
        said = (b"on" if self.enabled else b"off", b"nopass" if self.no_password else b"", self.sanitizing)
        return [flag for flag in said if flag]

    # -- passwords

    def admits(self, password: bytes) -> bool:
        """Return whether this password is right, in a time that does not depend on how close it is."""
        if not self.enabled:
            return False
        if self.no_password:
            return True
        given = _hash(password)
        matches = [hmac.compare_digest(given, known) for known in self.hashes]
        return any(matches)

    def with_password(self, password: bytes) -> User:
        """Return this user with this password as the only one; without any, if it is empty."""
        return replace(self, no_password=not password, hashes=(_hash(password),) if password else ())

    # -- rules

    def with_rules(self, rules: Iterable[bytes], fresh: Selector) -> User:
        """Return this user after rules of ACL SETUSER, however many: those of its root selector in one go. Raises
        RuleError, which says which one was refused."""
        user = self
        draft: SelectorDraft | None = None
        for rule in rules:
            try:
                if _is_of_root(rule):
                    draft = draft or SelectorDraft(user.root)
                    draft.apply(rule)
                    continue
                if draft is not None:
                    user, draft = replace(user, root=draft.selector()), None
                user = user.with_rule(rule, fresh)
            except RuleError as refusal:
                refusal.rule = rule
                raise
        return user if draft is None else replace(user, root=draft.selector())

    def with_rule(self, rule: bytes, fresh: Selector) -> User:
        """Return this user after one rule of ACL SETUSER; new selectors begin as `fresh`. Raises RuleError."""
        word, sign = c_string(rule).lower(), rule[:1]
        if not rule or word in (b"on", b"off"):
            return replace(self, enabled=word == b"on") if rule else self
        if word in _SANITIZING:
            return replace(self, sanitizing=word)
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
        if sign == b"(" and rule[-1:] == b")":
            return replace(self, selectors=(*self.selectors, _selector(rule[1:-1], fresh)))
        if word == b"clearselectors":
            return replace(self, selectors=())
        if word == b"reset":
            return User(self.name, sanitizing=b"sanitize-payload", root=fresh)
        return replace(self, root=self.root.with_rule(rule))


_OF_ROOT = frozenset((b"~", b"%", b"&", b"+", b"-"))


def default_user() -> User:
    """Return a user with all rights, like the default user until it is changed."""
    everything = Selector(allowed=EVERYTHING, all_keys=True, all_channels=True)
    return User(b"default", enabled=True, no_password=True, root=everything)


def _described(selector: Selector) -> list[tuple[Reply, Reply]]:
    return [
        (b"commands", commands_text(selector)),
        (b"keys", selector.keys_text),
        (b"channels", selector.channels_text),
    ]


def _hash(password: bytes) -> bytes:
    return hashlib.sha256(password).hexdigest().encode()


def _given_hash(rule: bytes) -> bytes:
    if rule[:1] in (b">", b"<"):
        return _hash(rule[1:])
    if _HASH.fullmatch(rule[1:]) is None:
        raise RuleError(_BAD_HASH)
    return rule[1:]


def _selector(rules: bytes, fresh: Selector) -> Selector:
    """Return the selector in parentheses. Raises RuleError."""
    return fresh.with_rules(inline.split(c_string(rules)) or ())


def _is_of_root(rule: bytes) -> bool:
    """Return whether it is one of the many: of commands, keys or channels."""
    return rule[:1] in _OF_ROOT


def whole_rules(words: list[bytes]) -> list[bytes]:
    """Join the words of each selector in parentheses into one rule. Raises RuleError."""
    rules: list[bytes] = []
    opened: bytes | None = None
    rule = b""
    for word in words:
        if word[:1] == b"(" and word[-1:] != b")":
            opened = rule = word
        elif opened is None:
            rules.append(word)
        else:
            rule += b" " + c_string(word)
            if word[-1:] == b")":
                rules.append(rule)
                opened = None
    if opened is not None:
        raise RuleError(b"Unmatched parenthesis in acl selector starting at '%b'." % c_string(opened))
    return rules
