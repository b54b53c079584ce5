"""The settings, the users and the libraries of functions that belong to the store ("the commons"): all of its processes
have the same, servers and programs alike.

What a process's configuration file or flags set at its start becomes the store's; everything else it takes from the
store. A later change is written to the store before it is answered, and the other processes are notified: a process
looks before the requests of its next turn (a number in shared memory says whether there is anything new), so that
whatever is executed after a CONFIG SET was answered obeys it, in every process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.engine.settings.settings import RefusedSetting, SettingError, split
from rlite_pubsub.storage.commons import function_libraries, shared_settings
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.names import subscribers

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.users import Users
    from rlite_pubsub.engine.functions.libraries import Libraries
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.pubsub.post import Post
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

SHARED = tuple(name for name, directive in DIRECTIVES.items() if "shared" in directive.flags)
"""The directives that are the store's. `retain` is too; engine/topics/keeping.py keeps its rules."""

KEPT_IN_STORE = frozenset((*SHARED, "retain", "requirepass"))
"""Those whose change is a commit."""


class Commons:
    """The commons as one process knows them."""

    def __init__(
        self,
        settings: Settings,
        users: Users,
        libraries: Libraries,
        store: Store,
        post: Post,
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called when others may have changed something. Raises StoreError if they cannot be read; if what
        was said at the start cannot be written, it applies here, and `cron` tries again."""
        self.hint = store.routes.numbers  # the third changes when there is something new
        self.seen = -1
        self._settings = settings
        self._users = users
        self._libraries = libraries
        self._store = store
        self._post = post
        self._changed = changed
        self._owed = [name for name in SHARED if name in settings.said]
        self._owes_password = "requirepass" in settings.said
        self._is_following = False
        self._has_failed = False
        self.refresh()
        self._pay()
        users.record_by(self._put_users)
        libraries.tell_by(self._tell)
        for name in SHARED:
            settings.on_change(name, partial(self._put_setting, name))

    def refresh(self) -> None:
        """Take over the store's state. Raises StoreError."""
        seen = self.hint[2]
        found, libraries = self._store.data.read(_read)
        self._is_following = True
        try:
            for name, text in found.settings.items():
                if name in SHARED and name not in self._owed and text != self._settings.text(name):
                    self._follow(name, text)
        finally:
            self._is_following = False
        self._users.follow(found.users)
        self._libraries.follow(libraries)
        self.seen = seen
        self._changed()

    def look_around(self) -> None:
        """Look for changes by others, before the requests of a turn. Never fails."""
        if self.hint[2] != self.seen:
            try:
                self.refresh()
            except StoreError as failure:
                log.warning("Can't see what other processes have set: %s", failure)

    def cron(self) -> None:
        """Look for changes, and write what is still owed."""
        self.look_around()
        if self._owed or self._owes_password:
            self._pay()

    def _follow(self, name: str, text: bytes) -> None:
        try:
            self._settings.set(name, split(DIRECTIVES[name], text))
        except RefusedSetting as refusal:
            log.warning("The store says %s %s, which can't be: %s", name, text.decode("utf-8", "replace"), refusal)

    def _pay(self) -> None:
        """Write what was said at the start to the store."""
        values = {name: self._settings.text(name) for name in self._owed}
        try:
            if values:
                self._write(lambda txn: _put_news(txn, values))
                self._owed = []
            if self._owes_password:
                user = self._users.default.with_password(self._settings["requirepass"])
                line, known = user.line, self._users.recorded(user.name)
                if line != known:
                    self._put_users({user.name: line})
                    self._users.follow_one(user)
                self._owes_password = False
        except StoreError as failure:
            level = logging.DEBUG if self._has_failed else logging.WARNING
            self._has_failed = True
            log.log(level, "Other processes don't have what is set here, the store can't take it: %s", failure)

    def _put_setting(self, name: str, _: object) -> None:
        if self._is_following:
            return
        if name in self._owed:
            self._owed.remove(name)
        text = self._settings.text(name)
        try:
            self._write(lambda txn: shared_settings.put_settings(txn, {name: text}))
        except StoreError as failure:
            raise SettingError(str(failure)) from failure

    def _put_users(self, lines: Mapping[bytes, bytes | None]) -> None:
        self._write(lambda txn: shared_settings.put_users(txn, lines))

    def _write(self, work: Callable[[Txn], int | None]) -> None:
        """Commit, then notify all others. Raises StoreError."""
        version = self._store.data.write(work)
        if version is not None:
            self._tell(version)

    def _tell(self, version: int) -> None:
        """Announce a version of the commons."""
        self._store.routes.announce_commons(version)  # and we look, too: another process may have been quicker
        own = self._post.own
        for subscriber in self._store.live.read(subscribers.records):
            if subscriber != own:
                self._post.ring(subscriber)


def _read(txn: Txn) -> tuple[shared_settings.Shared, int]:
    return shared_settings.get(txn), function_libraries.version(txn)


def _put_news(txn: Txn, values: Mapping[str, bytes]) -> int | None:
    known = shared_settings.get(txn).settings
    news = {name: value for name, value in values.items() if known.get(name) != value}
    return shared_settings.put_settings(txn, news) if news else None
