"""Whom HTTP lets in, and which pages' scripts may look at the answers.

Promises:
 - Where the server has a password, nothing is answered without it but `/healthz` and `/readyz`. It comes as a bearer
   token, or as the password of HTTP's basic authentication; from an EventSource, which can send no header, as the
   query's `access_token`.
 - Where `http-tokens` names a file of tokens, there is none without a token or the password, and a token may no more
   than its line says (rights.py).
 - Without either, and in protected mode, only this machine is served, as the server does on its own port; and only by
   its address or as localhost, so that no page can come in under a name of its own.
 - A page of another origin may change nothing and read nothing, unless `http-cors-origins` names its origin.
"""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from rlite_pubsub.commands.settings import SettingError
from rlite_pubsub.commands.user import User
from rlite_pubsub.gateway.http import Headers, Problem, Scope, header, parameters
from rlite_pubsub.gateway.rights import BadTokens, Rights, TokenFile

if TYPE_CHECKING:
    from rlite_pubsub.commands.instance import Instance

PROBES = frozenset(("/healthz", "/readyz"))
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_ANY = b"*"
_CHALLENGE = (b"www-authenticate", b'Bearer realm="rlite-pubsub"')
_ALLOWED: Headers = [
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"authorization, content-type, last-event-id, cache-control"),
    (b"access-control-max-age", b"600"),
]
_EXPOSED = (b"access-control-expose-headers", b"last-event-id")


class Guard:
    """Of one server. Its settings are looked at for each request: CONFIG SET counts at once."""

    def __init__(self, instance: Instance) -> None:
        """Raises BadTokens."""
        self._instance = instance
        self._tokens: TokenFile | None = None
        self._use(instance.settings["http-tokens"])
        instance.settings.on_change("http-tokens", self._change)

    def _use(self, path: bytes) -> None:
        self._tokens = TokenFile(Path(os.fsdecode(path)), self._instance.clock) if path else None

    def _change(self, path: bytes) -> None:
        """CONFIG SET http-tokens."""
        try:
            self._use(path)
        except BadTokens as failure:
            raise SettingError(str(failure)) from failure

    def check(self, scope: Scope) -> None:
        """Raises Problem."""
        if scope["path"] in PROBES or scope["method"] == "OPTIONS":
            return
        user = self._instance.users.default
        if self._tokens is not None:
            _check_token(self._tokens, scope, user)
        elif user.is_open:
            if self._instance.settings["protected-mode"] and not _is_local(scope):
                raise Problem(
                    403, "Protected mode", "Without a password only clients on this machine are served (requirepass)."
                )
            if self._instance.settings["protected-mode"] and not _is_named_locally(scope):
                raise Problem(
                    403, "Protected mode", "Without a password this server is asked by an address or as localhost."
                )
        else:
            token = _token(scope)
            if token is None or not user.admits(token):
                raise Problem(401, "Who are you?", "Send the password as a bearer token.", [_CHALLENGE])
        if scope["method"] not in _SAFE:
            origin = header(scope, b"origin")
            if origin is not None and not self._is_allowed(origin) and not _is_own(scope, origin):
                raise Problem(403, "Other origin", "Pages of this origin may change nothing here (http-cors-origins).")

    def headers(self, scope: Scope) -> Headers:
        """What an answer tells the browser of who may look at it."""
        allowed = self._instance.settings["http-cors-origins"]
        if not allowed:
            return []
        origin = header(scope, b"origin")
        if origin is None or not self._is_allowed(origin):
            return [(b"vary", b"origin")]
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin"), _EXPOSED]

    def preflight(self, scope: Scope) -> Headers:
        """The answer to a browser that asks first."""
        headers = self.headers(scope)
        return [*headers, *_ALLOWED] if len(headers) > 1 else headers

    def _is_allowed(self, origin: bytes) -> bool:
        allowed = self._instance.settings["http-cors-origins"].split()
        return origin in allowed or _ANY in allowed


def _check_token(tokens: TokenFile, scope: Scope, user: User) -> None:
    token = _token(scope)
    rights = tokens.rights(token) if token is not None else None
    if rights is not None:
        if not _covers(rights, scope):
            raise Problem(403, "No right", "This token may not do that here (http-tokens).")
    elif token is None or user.no_password or not user.admits(token):
        raise Problem(401, "Who are you?", "Send a bearer token that is known here.", [_CHALLENGE])


def _covers(rights: Rights, scope: Scope) -> bool:
    names = rights.read if scope["method"] in _SAFE else rights.write
    path = scope["path"]
    name = _name(path)
    if name:
        return names.cover(name.encode())
    patterns = [value.encode() for key, value in parameters(scope["query_string"]) if key == "pattern"]
    if path.rstrip("/") == "/api/channels" and patterns:
        return all(names.cover_pattern(pattern) for pattern in patterns)
    return names.cover_pattern(_ANY)


def _name(path: str) -> str:
    """The channel or topic that a path is about; empty for all others."""
    if path == "/api/events":
        return "events"
    for prefix in ("/api/channels/", "/api/topics/"):
        if path.startswith(prefix):
            name = path.removeprefix(prefix)
            if prefix == "/api/topics/":
                whole, _, last = name.rpartition("/")
                return whole if whole and last in ("batch", "info", "groups") else name
            return name
    return ""


def _is_local(scope: Scope) -> bool:
    client = scope.get("client")
    host = client[0] if client else ""
    return host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1")


def _is_named_locally(scope: Scope) -> bool:
    """Whether the host is an address or localhost: a page whose own name was made to mean this machine (DNS rebinding)
    says that name."""
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


def _token(scope: Scope) -> bytes | None:
    said = header(scope, b"authorization")
    if said is None:
        query = scope["query_string"]
        if scope["method"] != "GET" or b"access_token=" not in query:
            return None
        return next((value.encode() for name, value in parameters(query) if name == "access_token"), None)
    scheme, _, value = said.partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        try:
            user, _, password = b64decode(value.strip(), validate=True).partition(b":")
        except binascii.Error:
            return None
        return password if user in (b"", b"default") else None
    return None
