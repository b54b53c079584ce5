"""Access over HTTP, and which pages' scripts may see the answers.

Promises:
 - A client is a user of the server, and may do what that user may, or presents a token of `http-tokens`, and may no
   more than its line says (rights.py).
 - A user comes with HTTP's basic authentication, `NAME:PASSWORD`; the default one also with its password alone, as a
   bearer token. A client that has logged in (`POST /api/session`) sends the session's token instead (logins.py). An
   EventSource, which can send no header, says the same as the query's `access_token`.
 - With `tls-auth-clients-user cn`, a client without credentials is the user that its certificate's CN names, if there
   is one.
 - Where the default user needs no password, a client without credentials is it; but with tokens, nothing but
   `/healthz` and `/readyz` is answered without one, or without a user's password.
 - The page is shown to everybody: it has no data in it, and asks for the password itself.
 - Where the default user has no password, there are no tokens, and in protected mode, only this machine is served, as
   the server does on its own port; and only by its address or as localhost, so that no page can come in under a name
   of its own.
 - A page of another origin may change nothing and read nothing, unless `http-cors-origins` names its origin.
 - A password is compared in a time that does not tell how nearly it was right. Who was let in with one is known again
   by a digest of what was said, until any user changes.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import os
from base64 import b64decode
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.access.user import User
from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.gateway.access.logins import Logins, digest
from rlite_pubsub.gateway.access.rights import (
    REREAD_SECONDS,
    SAFE,
    TOKEN,
    BadTokens,
    Caller,
    Rights,
    TokenFile,
    Visit,
    refused,
)
from rlite_pubsub.gateway.http.operation import ACCESS_TOKEN
from rlite_pubsub.gateway.http.request import Headers, Problem, Scope, header, parameters
from rlite_pubsub.gateway.http.target import CHANNELS, SESSION
from rlite_pubsub.gateway.pages import PAGE, PAGE_FILES

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.acl_log import AclLog
    from rlite_pubsub.engine.access.users import Users
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.gateway.http.target import RequestTarget

PROBES = frozenset(("/healthz", "/readyz"))
_ANY = b"*"
_DEFAULT = b"default"
MAX_KNOWN = 4096
"""Users who were let in and are known again by what they say."""
_CHALLENGE = (b"www-authenticate", b'Bearer realm="rlite-pubsub"')
_ALLOWED: Headers = [
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"authorization, content-type, last-event-id, cache-control"),
    (b"access-control-max-age", b"600"),
]
_EXPOSED = (b"access-control-expose-headers", b"last-event-id")


class Said(NamedTuple):
    """The identity that a client claims."""

    whole: bytes
    """As it was said."""
    name: bytes
    """Empty: it was not said."""
    password: bytes


class Guard:
    """Decides who may ask what over HTTP. Its settings are looked at for each request: CONFIG SET counts at once."""

    def __init__(
        self, settings: Settings, users: Users, acl_log: AclLog, clock: Callable[[], float], logins: Logins
    ) -> None:
        """Raises BadTokens."""
        self._logins = logins
        self._settings = settings
        self._users = users
        self._acl_log = acl_log
        self._clock = clock
        self._tokens: TokenFile | None = None
        self._known: dict[bytes, User] = {}  # by digest of what they said
        self._visits: set[Visit] = set()
        self._by_token = 0  # how many of them
        self._look_at: asyncio.TimerHandle | None = None
        self._use(settings["http-tokens"])
        settings.on_change("http-tokens", self._change)
        users.watchers.append(self._users_changed)
        logins.watchers.append(self._check_visits)

    def _use(self, path: bytes) -> None:
        self._tokens = TokenFile(Path(os.fsdecode(path)), self._clock) if path else None

    def _change(self, path: bytes) -> None:
        """CONFIG SET http-tokens."""
        try:
            self._use(path)
        except BadTokens as failure:
            raise SettingError(str(failure)) from failure
        self._check_visits()

    def _users_changed(self) -> None:
        self._known.clear()
        self._check_visits()

    def _check_visits(self) -> None:
        """Users, tokens or sessions have changed: streams end whose clients may no longer read them."""
        for visit in self._visits:
            if not self._may_stay(visit):
                visit.end()

    def _may_stay(self, visit: Visit) -> bool:
        if visit.token:
            rights = self._tokens.rights(visit.token) if self._tokens is not None else None
            return rights is not None and _covers(rights, visit.scope)
        if visit.login and not self._logins.has(visit.login):
            return False
        user = self._users.get(visit.user_name)
        return user is not None and refused(user, visit.scope) is None

    def _look_at_tokens(self) -> None:
        """Nobody tells of a change of the file: while streams depend on it, it is looked at once a second."""
        self._look_at = None
        self._check_visits()
        self._look_again()

    def _look_again(self) -> None:
        if self._by_token and self._look_at is None:
            self._look_at = asyncio.get_running_loop().call_later(REREAD_SECONDS, self._look_at_tokens)

    def check(self, scope: Scope) -> Visit | None:
        """A visit is to be handed to `leave` in the end; what changes something is none. Raises Problem."""
        if _is_open(scope["target"].path) or scope["method"] == "OPTIONS":
            return None
        said = _said(scope)
        user = None
        rights = self._tokens.rights(digest(said.whole)) if self._tokens is not None and said is not None else None
        if rights is None:
            user = self._user(scope, said)
            refusal = refused(user, scope)
            if refusal is not None:
                self._note(scope, refusal.reason, refusal.object, user.name)
                raise Problem(403, "Forbidden", f"User {_text(user.name)} has no permission for this (ACL SETUSER).")
        elif not _covers(rights, scope):
            raise Problem(403, "Forbidden", "This token has no permission for this (http-tokens).")
        scope["caller"] = Caller(user, rights)
        if scope["method"] not in SAFE:
            origin = header(scope, b"origin")
            if origin is not None and not self._is_allowed(origin) and not _is_own(scope, origin):
                detail = "Pages of this origin may not change anything (http-cors-origins)."
                raise Problem(403, "Forbidden origin", detail)
            return None
        if user is None:
            assert said is not None
            visit = Visit(TOKEN, scope, token=digest(said.whole))
            self._by_token += 1
            self._look_again()
        else:
            is_login = said is not None and self._logins.has(login := digest(said.whole))
            visit = Visit(user.name, scope, login=login if is_login else b"")
        self._visits.add(visit)
        return visit

    def leave(self, visit: Visit) -> None:
        """The request is answered."""
        self._visits.discard(visit)
        if visit.token:
            self._by_token -= 1
            if not self._by_token and self._look_at is not None:
                self._look_at.cancel()
                self._look_at = None

    def _user(self, scope: Scope, said: Said | None) -> User:
        """Return the user of a request. Raises Problem."""
        default = self._users.default
        shown = self._shown(scope) if said is None else None
        if shown is not None:
            return shown
        if self._tokens is None:
            self._check_protected(scope)
            if default.is_open and (said is None or said.name in (b"", _DEFAULT)):
                return default
        if said is not None:
            if (user := self._logins.user(said.whole)) is not None:
                return user
            key = hashlib.sha256(said.whole).digest()
            user = self._known.get(key) or self._admitted(said)
            if user is not None:
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[key] = user
                return user
            self._note(scope, b"auth", b"HTTP", said.name or _DEFAULT)
        detail = "Send a user's name and password by basic authentication, or the default user's as a bearer token."
        if self._tokens is not None:
            detail = "Send a bearer token of http-tokens, or a user's name and password by basic authentication."
        raise Problem(401, "Authentication required", detail, [_CHALLENGE])

    def _shown(self, scope: Scope) -> User | None:
        """Return the user that a certificate shows, if certificates count."""
        name = scope.get("tls_name")
        if name is None or self._settings["tls-auth-clients-user"] != b"cn":
            return None
        user = self._users.get(name.encode())
        return user if user is not None and user.enabled else None

    def _admitted(self, said: Said) -> User | None:
        """The user whose password this is. With tokens, no password is none: everybody's token would be right."""
        user = self._users.get(said.name or _DEFAULT)
        if user is None or not user.admits(said.password) or (self._tokens is not None and user.no_password):
            name, colon, password = said.whole.partition(b":")
            user = self._users.get(name) if not said.name and colon else None  # a query's NAME:PASSWORD
            if user is None or not user.admits(password) or (self._tokens is not None and user.no_password):
                return None
        return user

    def _check_protected(self, scope: Scope) -> None:
        if not (self._users.default.no_password and self._settings["protected-mode"]):
            return
        if not _is_local(scope):
            raise Problem(
                403, "Protected mode", "While no password is set (requirepass), only this machine is served."
            )
        if not _is_named_locally(scope):
            raise Problem(
                403, "Protected mode", "While no password is set, the URL's host must be an IP address or localhost."
            )

    def _note(self, scope: Scope, reason: bytes, object: bytes, name: bytes) -> None:
        """Add an entry to ACL LOG."""
        host, port = scope.get("client") or ("?", 0)
        whence = f"addr={host}:{port} cmd=http|{scope['method'].lower()}".encode()
        self._acl_log.note(reason, b"toplevel", object, name, whence)

    def headers(self, scope: Scope) -> Headers:
        """Return the headers that tell the browser which origins may read the answer."""
        allowed = self._settings["http-cors-origins"]
        if not allowed:
            return []
        origin = header(scope, b"origin")
        if origin is None or not self._is_allowed(origin):
            return [(b"vary", b"origin")]
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin"), _EXPOSED]

    def preflight(self, scope: Scope) -> Headers:
        """Return the answer to a browser that asks first."""
        headers = self.headers(scope)
        return [*headers, *_ALLOWED] if len(headers) > 1 else headers

    def _is_allowed(self, origin: bytes) -> bool:
        allowed = self._settings["http-cors-origins"].split()
        return origin in allowed or _ANY in allowed


def _is_open(path: str) -> bool:
    """Return whether anybody may see the path."""
    return path in PROBES or path == PAGE or path.startswith(PAGE_FILES)


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _covers(rights: Rights, scope: Scope) -> bool:
    if scope["target"].path == SESSION:
        return True
    names = rights.read if scope["method"] in SAFE else rights.write
    target: RequestTarget = scope["target"]
    if target.name:
        return names.cover(target.name)
    patterns = [value.encode() for key, value in parameters(scope["query_string"]) if key == "pattern"]
    if target.path == CHANNELS and patterns:
        return all(names.cover_pattern(pattern) for pattern in patterns)
    return names.cover_pattern(_ANY)


def _is_local(scope: Scope) -> bool:
    client = scope.get("client")
    host = client[0] if client else ""
    return host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1")


def _is_named_locally(scope: Scope) -> bool:
    """Return whether the host is an address or localhost: a page whose own name was made to resolve to this machine
    (DNS rebinding) sends that name."""
    host = (header(scope, b"host") or b"localhost").decode("latin-1").lower()
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_own(scope: Scope, origin: bytes) -> bool:
    host = header(scope, b"host")
    return host is not None and origin == b"%b://%b" % (scope["scheme"].encode(), host)


def _said(scope: Scope) -> Said | None:
    said = header(scope, b"authorization")
    if said is None:
        query = scope["query_string"]
        if scope["method"] != "GET" or b"access_token=" not in query:
            return None
        token = next((value.encode() for name, value in parameters(query) if name == ACCESS_TOKEN), None)
        return Said(token, b"", token) if token is not None else None
    scheme, _, value = said.partition(b" ")
    if scheme.lower() == b"bearer":
        token = value.strip()
        return Said(token, b"", token)
    if scheme.lower() == b"basic":
        try:
            whole = b64decode(value.strip(), validate=True)
        except binascii.Error:
            return None
        name, _, password = whole.partition(b":")
        return Said(whole, name, password)
    return None
