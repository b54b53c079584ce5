"""What sessions that track keys are told when all keys are gone.

The session that flushed is told last, when its command (or its whole transaction) has been answered: a push must not
stand between the elements of a reply. CLIENT REPLY OFF does not silence these messages.
"""

from __future__ import annotations

from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Encoded, Push

_CHANNEL = b"__redis__:invalidate"
"""Where a RESP2 session to which tracking is redirected is told, as a subscriber."""


def invalidate_all(flushing: CommandSession) -> None:
    """Every key is gone: tell whoever tracks any."""
    for session in flushing.instance.sessions.values():
        if session.tracking is None:
            continue
        if session is flushing:
            session.tracking.pending_flushes += 1
        else:
            tell_flushed(session)


def tell_flushed(session: CommandSession) -> None:
    """Tell one tracking session, or the one that it redirects to, or that this one is gone."""
    tracking = session.tracking
    assert tracking is not None
    null = Encoded(encode(None, session.protocol))
    if not tracking.redirect:
        if session.protocol == 3:
            session.send(encode(Push([b"invalidate", null]), 3))
        return
    receiver = session.instance.sessions.get(tracking.redirect)
    if receiver is None:
        tracking.broken_redirect = True
        if session.protocol == 3:
            session.send(encode(Push([b"tracking-redir-broken", tracking.redirect]), 3))
    elif receiver.protocol == 3:
        receiver.send(encode(Push([b"invalidate", null]), 3))
    elif receiver.holds_names:
        receiver.send(encode(Push([b"message", _CHANNEL, null]), 2))
