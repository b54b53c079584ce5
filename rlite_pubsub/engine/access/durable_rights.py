"""The right to be a durable subscriber: a user needs the channel `durable:NAME` and every name that the subscriber
holds already, because the attached session gets its messages."""

from __future__ import annotations

from rlite_pubsub.durable.attaching import CLIENT_NAME
from rlite_pubsub.engine.access.permission import CHANNEL, MissingRight, refuse
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.pubsub.kinds import PATTERNS
from rlite_pubsub.storage.names import durables, receivers, subscriptions

_PATTERNS = receivers.DATABASES[PATTERNS.database].byte


def check_attachment(session: CommandSession, name: bytes, args: list[bytes]) -> None:
    """Check that this session's user may attach to it. `args`: the request. Raises CommandError, StoreError."""
    user, store = session.limits, session.engine.store
    if user is None or store is None:
        return
    selectors = user.all_selectors
    durable = store.data.read(lambda txn: durables.get(txn, name))
    held = store.data.read(lambda txn: list(subscriptions.held(txn, durable.id))) if durable is not None else []
    wanted = [(False, CLIENT_NAME + name), *((byte == _PATTERNS, held_name) for byte, held_name in held)]
    for is_pattern, one in wanted:
        if not any(
            selector.allows_pattern(one) if is_pattern else selector.allows_channel(one) for selector in selectors
        ):
            raise refuse(session, MissingRight(CHANNEL, 0, one), args)
