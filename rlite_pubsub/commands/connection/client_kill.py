"""CLIENT KILL: close the connections that pass every filter given."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlite_pubsub.commands.connection.client import client_type
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import NO_SUCH_CLIENT, SYNTAX, CommandError, c_string
from rlite_pubsub.protocol.replies import OK, Reply

_NO_ID = b"ERR client-id should be greater than 0"


class Filters(NamedTuple):
    """The filters; None: not given."""

    id: int | None = None
    type: bytes | None = None
    user: bytes | None = None
    address: bytes | None = None
    local_address: bytes | None = None
    skip_me: bool = True

    def pass_(self, session: CommandSession, asking: CommandSession) -> bool:
        """Return whether this session must be killed."""
        return not (
            (self.address is not None and session.address.encode() != self.address)
            or (self.local_address is not None and session.local_address.encode() != self.local_address)
            or (self.type is not None and session.type != self.type)
            or (self.id is not None and session.id != self.id)
            or (self.user is not None and session.user != self.user)
            or (self.skip_me and session is asking)
        )


@command(
    "client|kill",
    merge=merging.killed,
    merges_refusals=True,
    arity=-3,
    flags="admin noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="2.4.0",
    summary="Kill the connection of a client",
    complexity="O(N) where N is the number of client connections",
    arguments=(
        Arg(
            "filter",
            "oneof",
            arguments=(
                Arg("ip:port", deprecated_since="2.8.12"),
                Arg(
                    "new-format",
                    "oneof",
                    multiple=True,
                    arguments=(
                        Arg("client-id", "integer", token="ID", optional=True, since="2.8.12"),
                        Arg(
                            "normal_master_slave_pubsub",
                            "oneof",
                            token="TYPE",
                            optional=True,
                            since="2.8.12",
                            arguments=(
                                Arg("normal", "pure-token", token="normal"),
                                Arg("master", "pure-token", token="master", since="3.2.0"),
                                Arg("slave", "pure-token", token="slave"),
                                Arg("replica", "pure-token", token="replica", since="5.0.0"),
                                Arg("pubsub", "pure-token", token="pubsub"),
                            ),
                        ),
                        Arg("username", token="USER", optional=True),
                        Arg("ip:port", token="ADDR", optional=True),
                        Arg("ip:port", token="LADDR", optional=True, since="6.2.0"),
                        Arg("yes/no", token="SKIPME", optional=True),
                    ),
                ),
            ),
        ),
    ),
    history=(
        ("2.8.12", "Added new filter format."),
        ("2.8.12", "`ID` option."),
        ("3.2.0", "Added `master` type in for `TYPE` option."),
        ("5.0.0", "Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward compatibility."),
        ("6.2.0", "`LADDR` option."),
    ),
)
def client_kill(session: CommandSession, args: list[bytes]) -> Reply:
    """Reply to a bare address with OK or an error, and to filters with the number of those killed."""
    if len(args) == 3:
        killed = _kill(session, Filters(address=c_string(args[2]), skip_me=False))
        if not killed:
            raise CommandError(NO_SUCH_CLIENT)
        return OK
    return _kill(session, _parse(session, args))


def _kill(asking: CommandSession, filters: Filters) -> int:
    victims = [session for session in asking.engine.clients if filters.pass_(session, asking)]
    for victim in victims:
        if victim is asking:
            victim.close_after_reply()
        else:
            victim.close_now()
    return len(victims)


def _parse(session: CommandSession, args: list[bytes]) -> Filters:
    given: dict[str, Any] = {}
    for at in range(2, len(args), 2):
        if at + 1 == len(args):
            raise CommandError(SYNTAX)
        name, value = args[at].lower(), args[at + 1]
        match name:
            case b"id":
                given["id"] = integer(value, 1, LONG_MAX, _NO_ID)
            case b"type":
                given["type"] = client_type(value)
            case b"addr":
                given["address"] = c_string(value)
            case b"laddr":
                given["local_address"] = c_string(value)
            case b"user":
                if session.engine.users.get(value) is None:
                    raise CommandError(b"ERR No such user '%b'" % c_string(value))
                given["user"] = value
            case b"skipme" if value.lower() in (b"yes", b"no"):
                given["skip_me"] = value.lower() == b"yes"
            case _:
                raise CommandError(SYNTAX)
    return Filters(**given)
