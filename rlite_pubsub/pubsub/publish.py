"""PUBLISH: the one way of a message, from a command, a pipeline's run, a program, a keyspace event or HTTP.

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
from rlite_pubsub.storage.errors import StoreBusy, StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.pubsub.post import Post
    from rlite_pubsub.pubsub.route import Address


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
    if route is not NOBODY:
        send(hub, route, tails, aside)
    return route


def check_writers(hub: Hub, kind: Kind, name: bytes) -> bool:
    """Whether what is published there can be written now: for who waits for nobody once it has begun. True if it is
    retained, too, and so an entry of a topic. Raises StoreError."""
    hub.look_around()
    route = hub.route(kind, name)
    if route.address is not None and hub.post is not None:
        hub.post.check_writer(route.address)
    return route.topic is not None


def send(hub: Hub, route: Route, tails: list[bytes], aside: bool = False) -> None:
    """As `publish`, where the route is known."""
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


def publish_at_once(hub: Hub, name: bytes, payload: bytes) -> Route | None:
    """Send one message to a channel; what goes to other processes is committed, and they are rung, before this returns.
    None, and nothing was sent, if the channel is retained, or another process is in the middle of writing: others who
    share this process must not wait for it. Raises StoreError.
    """
    hub.look_around()
    route = hub.channel_routes.get(name) or hub.route(CHANNELS, name)
    address, post = route.address, hub.post
    if route.topic is not None:
        return None
    if address is None or post is None:
        if route.receivers:
            send(hub, route, [b"%d\r\n%b" % (len(payload), payload)])
        return route
    try:
        _send_elsewhere(hub, post, route, address, payload)
    except StoreHeld:
        return None
    return route


def _send_elsewhere(hub: Hub, post: Post, route: Route, address: Address, payload: bytes) -> None:
    if route.audiences or address.durable or hub.open is not None or post.is_due:
        send(hub, route, [b"%d\r\n%b" % (len(payload), payload)])
        try:
            hub.send_now(patiently=True)
        except StoreHeld as held:  # since `publish` has asked: some have got it already, so it is not said again
            raise StoreBusy(held.path, "another process has begun to write, and does not end") from held
    else:
        post.send_one(address, payload)  # no session here, and nothing under way, has a part in it
        hub.delivered += route.receivers
