"""Whom HTTP lets in, and which pages' scripts may look at the answers.

Promises:
 - Where the server has a password, nothing is answered without it but `/healthz` and `/readyz`. It comes as a bearer
   token, or as the password of HTTP's basic authentication; from an EventSource, which can send no header, as the
   query's `access_token`.
 - Without one, and in protected mode, only this machine is served: as the server does on its own port.
 - A page of another origin may change nothing and read nothing, unless `http-cors-origins` names its origin.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING

from rlite_pubsub.gateway.http import Headers, Problem, Scope, header, parameters

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
        self._instance = instance

    def check(self, scope: Scope) -> None:
        """Raises Problem."""
        if scope["path"] in PROBES or scope["method"] == "OPTIONS":
            return
        user = self._instance.default_user
        if user.is_open:
            if self._instance.settings["protected-mode"] and not _is_local(scope):
                raise Problem(
                    403, "Protected mode", "Without a password only clients on this machine are served (requirepass)."
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


def _is_local(scope: Scope) -> bool:
    client = scope.get("client")
    host = client[0] if client else ""
    return host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1")


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
