"""PUBLISH: the one way of a message, from a command, a pipeline's run, a program, a keyspace event or HTTP.

What is refused nobody has heard. `deliver` sends one message to other processes before any session here receives it;
where it can't, it has done nothing. A run (`send`) is in the outboxes of the sessions here before the turn's end brings
it to the others: it waits for them there, and where they can't have it in the end, its publisher is told that some may
(PartlySent).

Where the turn changes keys, messages go to other processes behind the commit of these (`publish`, `publish_whole`): who
hears of a change can read it. What stands in a transaction or a script is not refused because another process has
just begun to write: it waits for the lock at the turn's end, and its reply with it.

Laws kept here:
 1. publish: route -> append -> COMMIT -> ring. What is said joins the run that is under way, and the post that is due;
    the turn's end (engine/turn.py) commits and rings.
 5. A message to a retained channel becomes an entry first. Where that can't be, nobody receives it.
 7. Nobody waits for a subscriber: a run goes into outboxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.pubsub.kinds import CHANNELS, Kind
from rlite_pubsub.pubsub.route import NOBODY, Route
from rlite_pubsub.storage.agenda import LETTERS
from rlite_pubsub.storage.errors import PartlySent, StoreError, StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.hub import Hub


def publish(hub: Hub, kind: Kind, name: bytes, tails: list[bytes], aside: bool = False) -> Route:
    """Send a run of messages, each `<length>\\r\\n<payload>`, to all receivers, and return the route that they took.

    What is said `aside`, in the middle of a change (the event of a key), is not retained; nor is it looked then what
    other processes hold, for that may end the transaction which the change is made in: dispatch has looked before.
    Raises StoreError, and what `Hub.retain` raises: then nothing was sent.
    """
    if not aside:
        hub.look_around()
    route = hub.channel_routes.get(name) if kind is CHANNELS else None
    if route is None:
        route = hub.route(kind, name)
    if route.address is not None and not aside and not hub.agenda.due & LETTERS:
        route = _without_dead(hub, kind, name, route)
    if route is not NOBODY:
        send(hub, route, tails, aside)
    return route


def _without_dead(hub: Hub, kind: Kind, name: bytes, route: Route) -> Route:
    """Return the route, without processes that have died meanwhile: they are not counted. Raises StoreError."""
    if route.address is None or hub.post is None or not hub.post.reap_unheard(route.address):
        return route
    hub.look_around()
    return hub.route(kind, name)


def check_writers(hub: Hub, kind: Kind, name: bytes) -> bool:
    """Check that a message published there can be written now, for a caller that cannot wait once it has begun. Returns
    True if the channel is retained, so that the message becomes an entry. Raises StoreError."""
    hub.look_around()
    route = hub.route(kind, name)
    if route.address is not None and hub.post is not None:
        hub.post.check_writer(route.address)
    return route.topic is not None


def send(hub: Hub, route: Route, tails: list[bytes], aside: bool = False) -> None:
    """Like `publish`, for a known route: hand messages to the sessions here and to the post, both for the turn's end.
    What is said `aside` has been checked and retained before, if at all."""
    if route.address is not None and hub.post is not None and not aside and not hub.agenda.due & LETTERS:
        hub.post.check_writer(route.address)
    if route.topic is not None and not aside:
        hub.retain(route.topic, tails)
    if route.receivers:
        hub.delivered += len(tails) * route.receivers
        if route.address is not None and hub.post is not None:
            hub.post.add(route, tails)
            hub.agenda.due |= LETTERS
        if route.audiences:
            hub.join_run(route, tails)


def publish_whole(hub: Hub, kind: Kind, name: bytes, tails: list[bytes]) -> Route:
    """As `publish`, in the middle of what must not stop half-way (EXEC, a script). Who receives it was looked up before
    that began, and nobody asks whether other processes write: what is for them waits at the turn's end until it can be
    written. Raises StoreError, and what `Hub.retain` raises: nobody has received it."""
    route = hub.route(kind, name)
    if route is not NOBODY:
        if route.topic is not None:
            hub.retain(route.topic, tails)
        send(hub, route, tails, aside=True)
    return route


def publish_elsewhere(hub: Hub, route: Route, tails: list[bytes]) -> None:
    """Send a run to other processes and to durable subscribers, and to no session here, at the turn's end."""
    address = route.address
    hub.published += len(tails)
    if address is not None and hub.post is not None:
        hub.delivered += len(tails) * (route.receivers - route.receivers_here)
        hub.post.add(route, tails)
        hub.agenda.due |= LETTERS


def deliver(hub: Hub, kind: Kind, name: bytes, tails: list[bytes]) -> Route:
    """Like `publish`, but other processes and durable subscribers have it when this returns. Raises StoreError, and
    what `Hub.retain` raises: nobody has received it; or PartlySent.
    """
    hub.look_around()
    route = _without_dead(hub, kind, name, hub.route(kind, name))
    if route is not NOBODY:
        _deliver(hub, route, tails)
    return route


def _deliver(hub: Hub, route: Route, tails: list[bytes]) -> None:
    address, post = route.address, hub.post
    if address is None or post is None:
        send(hub, route, tails)
        return
    hub.send_due()
    post.check_writer(address)
    failure: StoreError | None = None
    with post.kept_writer(address):
        if route.topic is not None:
            hub.retain(route.topic, tails)
        post.add(route, tails)
        try:
            post.send()
        except StoreError as met:
            if post.take_back(address) and route.topic is None:
                raise
            failure = met
    hub.delivered += len(tails) * route.receivers
    if route.audiences:
        hub.join_run(route, tails)
    if failure is not None:
        raise PartlySent(failure) from failure


def unsent(route: Route, failure: Exception) -> Exception:
    """Return the error for the publisher of a run that the turn's end could not bring to other processes."""
    address = route.address
    is_heard = route.audiences or route.topic is not None or (address is not None and address.durable)
    return PartlySent(failure) if is_heard else failure


def publish_at_once(hub: Hub, name: bytes, payload: bytes) -> Route | None:
    """Send one message to a channel; what goes to other processes is committed, and they are rung, before this returns.
    None, and nothing was sent, if the channel is retained, or another process is in the middle of writing: others who
    share this process must not wait for it. Raises StoreError.
    """
    hub.look_around()
    route = hub.channel_routes.get(name) or hub.route(CHANNELS, name)
    if route.address is not None:
        route = _without_dead(hub, CHANNELS, name, route)
    address, post = route.address, hub.post
    if route.topic is not None:
        return None
    if address is None or post is None:
        if route.receivers:
            send(hub, route, [b"%d\r\n%b" % (len(payload), payload)])
        return route
    try:
        if route.audiences or address.durable or hub.open is not None or post.is_due:
            _deliver(hub, route, [b"%d\r\n%b" % (len(payload), payload)])
        else:
            post.send_one(address, payload)  # no session here, and nothing under way, has a part in it
            hub.delivered += route.receivers
    except StoreHeld:
        return None
    return route
