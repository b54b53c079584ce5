"""Logging in to the page: a user's name and password become a session, and what the caller may do is told, so that the
page offers nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.gateway.access.rights import Caller
from rlite_pubsub.gateway.http.operation import Request, as_json, serves
from rlite_pubsub.gateway.http.request import Problem, header
from rlite_pubsub.gateway.http.schema import NUMBER, TEXT, TRUTH, array, maybe, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.gateway.access.logins import Logins

_MAY = record(
    see_all=TRUTH,
    see_connections=TRUTH,
    close_connections=TRUTH,
    see_keys=TRUTH,
    publish=array(TEXT),
    subscribe=array(TEXT),
    append=array(TEXT),
    read=array(TEXT),
    pause=array(TEXT),
    requeue=array(TEXT),
)
_REDIS = record(port=maybe(NUMBER), tls_port=maybe(NUMBER), unix_socket=maybe(TEXT))


class SessionResource:
    """The session of the page's user."""

    def __init__(self, logins: Logins, settings: Settings, needs_login: Callable[[], bool]) -> None:
        self._logins = logins
        self._settings = settings
        self._needs_login = needs_login

    @serves(
        "GET",
        "/api/session",
        "Who asks, and what they may do",
        about="`user` is null for a token of `http-tokens`. Of what is about names, `may` has the patterns of those "
        "that are allowed. `redis` says where Redis clients connect.",
        answers=as_json(record(user=maybe(TEXT), needs_login=TRUTH, may=_MAY, redis=_REDIS)),
    )
    async def _show(self, request: Request) -> object:
        caller: Caller = request.scope["caller"]
        settings = self._settings
        redis = {
            "port": settings["port"] or None,
            "tls_port": settings["tls-port"] or None,
            "unix_socket": settings["unixsocket"].decode(errors="replace") or None,
        }
        return {"user": caller.name, "needs_login": self._needs_login(), "may": _may(caller), "redis": redis}

    @serves(
        "POST",
        "/api/session",
        "Log in",
        about="With a user's name and password by basic authentication. The answer's `token` is sent as a bearer "
        "token from "
        "then on; it ends after twelve hours without a request, when the user changes, or with the server. With the "
        "query `end=1` the session whose token is sent ends.",
        answers=as_json(record(user=maybe(TEXT), token=maybe(TEXT))),
        undeclared=("end",),
    )
    async def _begin(self, request: Request) -> object:
        caller: Caller = request.scope["caller"]
        said = header(request.scope, b"authorization") or b""
        if ("end", "1") in request.query:
            self._logins.end(said.partition(b" ")[2].strip())
            return {"user": None, "token": None}
        if caller.user is None or not said:
            raise Problem(400, "No user", "Send a user's name and password by basic authentication.")
        return {"user": caller.name, "token": self._logins.begin(caller.user).decode()}


def _may(caller: Caller) -> dict[str, object]:
    return {
        "see_all": caller.sees_all(),
        "see_connections": caller.may(b"subscriber.clients"),
        "close_connections": caller.may(b"subscriber.kill", b"0" * 16, b"1"),
        "see_keys": caller.sees_all() and caller.may(b"scan", b"0"),
        "publish": caller.names(b"publish", is_of_channels=True),
        "subscribe": caller.names(b"subscribe", is_of_channels=True),
        "append": caller.names(b"xadd"),
        "read": caller.names(b"xrange"),
        "pause": caller.names(b"topic.pause"),
        "requeue": caller.names(b"topic.requeue"),
    }
