"""Sessions of the page: a user who has shown its password is known by a token for a while.

Promises:
 - A token is 256 random bits, of which only the digest is kept. The page sends it in a header, never in a URL or a
   cookie, so no page of another origin can use it.
 - It ends when its user logs out, is disabled or deleted, gets another password, or does not come for `IDLE_S`; and
   with the server.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.user import User
    from rlite_pubsub.engine.access.users import Users

IDLE_S = 12 * 3600.0
MOST = 10_000
"""Beyond these, the one that has not come for longest ends."""
PREFIX = b"session-"


class Login:
    """One of them."""

    __slots__ = ("hashes", "seen_at", "user_name")

    def __init__(self, user: User, seen_at: float) -> None:
        self.user_name = user.name
        self.hashes = user.hashes
        self.seen_at = seen_at


class Logins:
    """The logins of one server's page."""

    def __init__(self, users: Users, clock: Callable[[], float]) -> None:
        self._users = users
        self._clock = clock
        self._by_digest: dict[bytes, Login] = {}  # who came last is last
        self.watchers: list[Callable[[], None]] = []
        """Called when somebody logs out."""

    def begin(self, user: User) -> bytes:
        """Return a token for this user."""
        token = PREFIX + secrets.token_urlsafe(32).encode()
        while len(self._by_digest) >= MOST:
            del self._by_digest[next(iter(self._by_digest))]
        self._by_digest[digest(token)] = Login(user, self._clock())
        return token

    def user(self, token: bytes) -> User | None:
        """Return the user of a token; None if it belongs to nobody, or has expired."""
        if not token.startswith(PREFIX):
            return None
        key = digest(token)
        login = self._by_digest.pop(key, None)
        if login is None:
            return None
        now, user = self._clock(), self._user_of(login)
        if user is None or not login.seen_at <= now + 1:
            return None
        if now - login.seen_at > IDLE_S:
            return None
        login.seen_at = now
        self._by_digest[key] = login
        return user

    def end(self, token: bytes) -> bool:
        """End a session; return whether it existed."""
        was_there = self._by_digest.pop(digest(token), None) is not None
        for watcher in self.watchers:
            watcher()
        return was_there

    def has(self, digest: bytes) -> bool:
        """Return whether there is a session whose token has this digest."""
        login = self._by_digest.get(digest)
        return login is not None and self._user_of(login) is not None

    def _user_of(self, login: Login) -> User | None:
        user = self._users.get(login.user_name)
        return user if user is not None and user.enabled and user.hashes == login.hashes else None


def digest(token: bytes) -> bytes:
    """Return what is kept of a token: looking it up reveals nothing about how close a guess is."""
    return hashlib.sha256(token).digest()
