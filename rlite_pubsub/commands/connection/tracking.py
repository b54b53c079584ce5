"""CLIENT TRACKING: what a session wants to be told of changed keys.

The state is kept and shown as Redis shows it. engine/tracking/invalidation.py decides which sessions are notified of
what.
"""

from __future__ import annotations

from itertools import pairwise

from rlite_pubsub.commands.connection.client import ON_OFF
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.tracking.tracking import Tracking
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, c_string
from rlite_pubsub.protocol.replies import OK, Reply, SetReply

_FLAGS = frozenset((b"bcast", b"optin", b"optout", b"noloop"))


# -- switching it on


@command(
    "client|tracking",
    arity=-3,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="6.0.0",
    summary="Enable or disable server assisted client side caching support",
    complexity="O(1). Some options may introduce additional complexity.",
    arguments=(
        Arg(
            "status",
            "oneof",
            arguments=ON_OFF,
        ),
        Arg("client-id", "integer", token="REDIRECT", optional=True),
        Arg("prefix", token="PREFIX", optional=True, multiple=True, multiple_token=True),
        Arg("BCAST", "pure-token", token="BCAST", optional=True),
        Arg("OPTIN", "pure-token", token="OPTIN", optional=True),
        Arg("OPTOUT", "pure-token", token="OPTOUT", optional=True),
        Arg("NOLOOP", "pure-token", token="NOLOOP", optional=True),
    ),
)
def client_tracking(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = _parse(session, args[3:])
    match args[2].lower():
        case b"on":
            _check(session.tracking, wanted)
            wanted.succeed(session.tracking)
            if session.engine.hearing is not None:
                session.engine.hearing.begin()
            session.engine.tracked.begin(session, wanted)
        case b"off":
            session.engine.tracked.forget(session)
        case _:
            raise CommandError(SYNTAX)
    return OK


def _parse(session: CommandSession, words: list[bytes]) -> Tracking:
    redirect = 0
    prefixes: list[bytes] = []
    flags: set[bytes] = set()
    rest = iter(words)
    for word in rest:
        option = word.lower()
        if option in _FLAGS:
            flags.add(option)
            continue
        value = next(rest, None)
        if option == b"redirect" and value is not None:
            if redirect:
                raise CommandError(b"ERR A client can only redirect to a single other client")
            redirect = integer(value)
            if redirect not in session.engine.sessions:
                raise CommandError(b"ERR The client ID you want redirect to does not exist")
        elif option == b"prefix" and value is not None:
            prefixes.append(value)
        else:
            raise CommandError(SYNTAX)
    return Tracking(
        redirect,
        prefixes,
        broadcast=b"bcast" in flags,
        opt_in=b"optin" in flags,
        opt_out=b"optout" in flags,
        no_loop=b"noloop" in flags,
    )


def _check(old: Tracking | None, new: Tracking) -> None:
    """Check that the options go together, and with the earlier choices. Raises CommandError."""
    if new.prefixes and not new.broadcast:
        raise CommandError(b"ERR PREFIX option requires BCAST mode to be enabled")
    if old is not None and old.broadcast != new.broadcast:
        raise CommandError(
            b"ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling "
            b"it with a different mode."
        )
    if new.broadcast and (new.opt_in or new.opt_out):
        raise CommandError(b"ERR OPTIN and OPTOUT are not compatible with BCAST")
    if new.opt_in and new.opt_out:
        raise CommandError(b"ERR You can't specify both OPTIN mode and OPTOUT mode")
    if old is not None and ((new.opt_in and old.opt_out) or (new.opt_out and old.opt_in)):
        raise CommandError(
            b"ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling "
            b"it with a different mode."
        )
    _check_prefixes(old.prefixes if old is not None else [], new.prefixes)


def _check_prefixes(held: list[bytes], wanted: list[bytes]) -> None:
    """No prefix may begin with another, or a change would be told twice: sorted, one stands right behind another that
    it begins with, or behind those that do as well. Which pair is named is Redis's choice: the first of the request
    that overlaps, and the first that it overlaps with."""
    if not wanted:
        return
    ordered = sorted((*held, *wanted))
    if not any(other.startswith(prefix) for prefix, other in pairwise(ordered)):
        return
    overlapping = _overlapping_ones(ordered)
    for place, prefix in enumerate(wanted):
        if prefix in overlapping:
            for other in held:
                if _overlap(prefix, other):
                    raise _overlapping(prefix, b"an existing", other)
            for other in wanted[place + 1 :]:
                if _overlap(prefix, other):
                    raise _overlapping(prefix, b"another provided", other)


def _overlapping_ones(ordered: list[bytes]) -> set[bytes]:
    """Return those of sorted prefixes that overlap with another."""
    found: set[bytes] = set()
    open_ones: list[bytes] = []  # each begins with the one before
    for prefix in ordered:
        while open_ones and not prefix.startswith(open_ones[-1]):
            open_ones.pop()
        if open_ones:
            found.update((prefix, open_ones[-1]))
        open_ones.append(prefix)
    return found


def _overlap(prefix: bytes, other: bytes) -> bool:
    return prefix.startswith(other) or other.startswith(prefix)


def _overlapping(prefix: bytes, which: bytes, other: bytes) -> CommandError:
    return CommandError(
        b"ERR Prefix '%b' overlaps with %b prefix '%b'. Prefixes for a single client must not overlap."
        % (c_string(prefix), which, c_string(other))
    )


# -- asking about it


@command(
    "client|caching",
    arity=3,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="6.0.0",
    summary="Instruct the server about tracking or not keys in the next request",
    complexity="O(1)",
    arguments=(
        Arg(
            "mode",
            "oneof",
            arguments=(Arg("yes", "pure-token", token="YES"), Arg("no", "pure-token", token="NO")),
        ),
    ),
)
def client_caching(session: CommandSession, args: list[bytes]) -> Reply:
    tracking, word = session.tracking, args[2].lower()
    if tracking is None:
        raise CommandError(
            b"ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode "
            b"enabled"
        )
    if word not in (b"yes", b"no"):
        raise CommandError(SYNTAX)
    if word == b"yes" and not tracking.opt_in:
        raise CommandError(b"ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
    if word == b"no" and not tracking.opt_out:
        raise CommandError(b"ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
    tracking.begin_caching()
    return OK


@command(
    "client|getredir",
    arity=2,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="6.0.0",
    summary="Get tracking notifications redirection client ID if any",
    complexity="O(1)",
)
def client_getredir(session: CommandSession, args: list[bytes]) -> Reply:
    return -1 if session.tracking is None else session.tracking.redirect


@command(
    "client|trackinginfo",
    arity=2,
    flags="noscript loading stale sentinel",
    categories="connection",
    group="connection",
    since="6.2.0",
    summary="Return information about server assisted client side caching for the current connection",
    complexity="O(1)",
)
def client_trackinginfo(session: CommandSession, args: list[bytes]) -> Reply:
    tracking = session.tracking
    if tracking is None:
        return {b"flags": SetReply([b"off"]), b"redirect": -1, b"prefixes": []}
    flags = {
        b"on": True,
        b"bcast": tracking.broadcast,
        b"optin": tracking.opt_in,
        b"caching-yes": tracking.opt_in and tracking.caching,
        b"optout": tracking.opt_out,
        b"caching-no": tracking.opt_out and tracking.caching,
        b"noloop": tracking.no_loop,
        b"broken_redirect": tracking.broken_redirect,
    }
    return {
        b"flags": SetReply([name for name, holds in flags.items() if holds]),
        b"redirect": tracking.redirect,
        b"prefixes": list(tracking.prefixes),
    }
