"""All users, by name, and what becomes of their connections when they change.

Promises, redis-server 7.0.15's:
 - There is always a `default`: every connection belongs to it until it logs in as another.
 - A user that is deleted, or replaced by ACL LOAD, takes its connections with it.
 - A session that holds a channel its user has lost is closed; so is a follower of a topic that its user may no longer
   read.
 - Permissions are checked for each command, those of a transaction included; a change applies from the next one on.
Users belong to the store: all of its processes have the same, and connections are closed in every process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rlite_pubsub.engine.access.selector import READ, RuleError, Selector
from rlite_pubsub.engine.access.user import User, default_user, whole_rules
from rlite_pubsub.engine.settings.directive import SettingError
from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.settings.settings import Settings

log = logging.getLogger("rlite_pubsub")

DEFAULT = b"default"
_TWO_PLACES = (
    b"Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid. This "
    b"setup is very likely to lead to configuration errors and security holes, please define either an ACL file or "
    b"declare users directly in your redis.conf, but not both."
)


class Users:
    """The users, by name. `sessions` are those of the server, by id."""

    def __init__(self, settings: Settings, sessions: Mapping[int, Client]) -> None:
        self._settings = settings
        self._sessions = sessions
        self._users: dict[bytes, User] = {}
        self.watchers: list[Callable[[], None]] = []
        """Called at every change of any user."""
        self.default = self._users[DEFAULT] = default_user().with_password(settings["requirepass"])
        self.limits: User | None = None  # the default user, if it may not do everything
        self._recorded: dict[bytes, bytes] = {}  # the lines in the store, by name
        self._record: Callable[[Mapping[bytes, bytes | None]], None] = _nowhere
        settings.on_change("requirepass", self._set_default_password)

    @property
    def all(self) -> list[User]:
        """All users, in the order of their names."""
        return [self._users[name] for name in sorted(self._users)]

    @property
    def config_lines(self) -> list[bytes]:
        """The lines that CONFIG REWRITE writes; none if users are in a file of their own."""
        return [] if self._settings["aclfile"] else [user.line for user in self.all]

    def get(self, name: bytes) -> User | None:
        """Return the user of this name."""
        return self._users.get(name)

    @property
    def fresh_selector(self) -> Selector:
        """A selector before any rule: it allows nothing but the channels of acl-pubsub-default."""
        return Selector(all_channels=self._settings["acl-pubsub-default"] == b"allchannels")

    def load(self) -> None:
        """Load users at the start, from the configuration file or from the file of users, and write them to the store.
        Without a file of users, the store keeps its other users. Raises UsersFileError, StoreError."""
        from rlite_pubsub.engine.access.acl_file import UsersFileError, configured, load

        path: bytes = self._settings["aclfile"]
        lines = self._settings.users
        if path and lines:
            raise UsersFileError(_TWO_PLACES)
        if path:
            self.replace(load(path, self.fresh_selector))
            return
        for user in configured(lines, self.default, self.fresh_selector):
            if not user.enabled:
                log.info("The user '%s' is disabled: there is no 'on' among its rules.", user.name.decode("latin-1"))
            if self.recorded(user.name) != user.line:
                self.put(user)

    def changed(self, name: bytes, words: list[bytes]) -> User:
        """Return what a user, new or not, would be after these rules. Raises RuleError."""
        user = self._users.get(name) or User(name, root=self.fresh_selector)
        try:
            return user.with_rules(whole_rules(words), self.fresh_selector)
        except RuleError as refusal:
            if refusal.rule is None:
                raise  # a selector does not end
            raise RuleError(
                b"Error in ACL SETUSER modifier '%b': %b" % (c_string(refusal.rule), refusal.text)
            ) from refusal

    def put(self, user: User, asking: Client | None = None) -> None:
        """Set the user of this name. `asking`: the session that asked. Raises StoreError."""
        self._write({user.name: user.line})
        self._put(user, asking)
        self._settle()

    def _put(self, user: User, asking: Client | None) -> None:
        before = self._users.get(user.name)
        self._users[user.name] = user
        if before is not None:
            self._close_robbed(before, user, asking)

    def delete(self, names: Iterable[bytes], asking: Client | None = None) -> int:
        """Delete users; return how many existed. Raises StoreError."""
        gone = {name for name in names if name in self._users}
        if gone:
            self._write(dict.fromkeys(gone))
        for name in gone:
            del self._users[name]
        self._close_all_of(gone, asking)
        self._settle()
        return len(gone)

    def replace(self, users: Mapping[bytes, User], asking: Client | None = None) -> None:
        """Replace all users; those not among the new ones are deleted, except the default one. All connections are
        closed but those of the default user. Raises StoreError."""
        gone = self._users.keys() - {DEFAULT}
        replaced = {DEFAULT: default_user(), **users}
        self._write({**dict.fromkeys(gone), **{user.name: user.line for user in replaced.values()}})
        self._users = replaced
        self._close_all_of(gone, asking)
        self._settle()

    # -- in the store

    def record_by(self, record: Callable[[Mapping[bytes, bytes | None]], None]) -> None:
        """Have users' lines, by name, written to the store before they take effect here. `record` raises StoreError."""
        self._record = record

    def _write(self, lines: Mapping[bytes, bytes | None]) -> None:
        """Write lines to the store, and remember them as its state: a later change by others counts as news even if it
        restores what was there before. Raises StoreError."""
        self._record(lines)
        for name, line in lines.items():
            if line is None:
                self._recorded.pop(name, None)
            else:
                self._recorded[name] = line

    def recorded(self, name: bytes) -> bytes | None:
        """Return a user's line in the store."""
        return self._recorded.get(name)

    def follow(self, lines: Iterable[bytes]) -> None:
        """Take over the users of the store, which may say nothing of the default one."""
        fresh = {line.split(b" ", 2)[1]: line for line in lines}
        known, self._recorded = self._recorded, fresh
        if fresh == known:
            return
        from rlite_pubsub.engine.access.acl_file import of_lines

        news = {name: line for name, line in fresh.items() if known.get(name) != line}
        for user in of_lines(news.values(), self.fresh_selector).values():
            before = self._users.get(user.name)
            if before is None or before.line != news[user.name]:  # as in Redis, lines omit what makes no difference
                self._put(user, None)
        gone = self._users.keys() - fresh.keys() - {DEFAULT}
        for name in gone:
            del self._users[name]
        self._close_all_of(gone, None)
        self._settle()

    def follow_one(self, user: User) -> None:
        """Take over one user of the store."""
        self._recorded[user.name] = user.line
        self._put(user, None)
        self._settle()

    def _settle(self) -> None:
        """Apply each user's rights to its sessions. If the default user needs no password, nobody needs to log in."""
        self.default = self._users[DEFAULT]
        self.limits = None if self.default.is_unrestricted else self.default
        is_open = self.default.is_open
        for session in list(self._sessions.values()):
            session.obey(self._users.get(session.user), is_open=is_open)
        for watcher in self.watchers:
            watcher()

    def _set_default_password(self, password: bytes) -> None:
        try:
            self.put(self.default.with_password(password))
        except StoreError as failure:
            raise SettingError(str(failure)) from failure

    # -- closing connections

    def _close_all_of(self, names: set[bytes], asking: Client | None) -> None:
        for session in list(self._sessions.values()):
            if session.user in names:
                session.user, session.logged_in = DEFAULT, False
                _close(session, asking)

    def _close_robbed(self, before: User, user: User, asking: Client | None) -> None:
        """Close the sessions that hold a name their user has lost. A session that had no right to any channel keeps
        what it holds from the time when it was another user, as in Redis."""
        had_channels = any(selector.all_channels or selector.channels for selector in before.all_selectors)
        for session in list(self._sessions.values()):
            if session.user != user.name:
                continue
            if (had_channels and not _may_hold(session, user)) or not _may_follow(session, user):
                _close(session, asking)


def _nowhere(lines: Mapping[bytes, bytes | None]) -> None:
    """Do nothing: without a store the users are this process's alone."""


def _may_hold(session: Client, user: User) -> bool:
    """Return whether a user may hold all channels and patterns of a session."""
    selectors = user.all_selectors
    names = [*session.names[CHANNELS.index], *session.names[SHARDS.index]]
    patterns = session.names[PATTERNS.index]
    return all(any(selector.allows_channel(name) for selector in selectors) for name in names) and all(
        any(selector.allows_pattern(pattern) for selector in selectors) for pattern in patterns
    )


def _may_follow(session: Client, user: User) -> bool:
    """Return whether a user may read all topics that a session follows or consumes."""
    names = [name for _, name in session.follows or ()] + [seat[1] for seat in session.consumes or ()]
    return all(any(selector.allows_key(name, READ) for selector in user.all_selectors) for name in names)


def _close(session: Client, asking: Client | None) -> None:
    if session is asking:
        session.close_after_reply()
    else:
        session.close_now()
