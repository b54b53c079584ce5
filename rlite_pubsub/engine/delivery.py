"""What a process has of its store before any command is executed: its place among the subscribers, and the hub.

A server has it, and so has a program without one, which may need no more: what only publishes executes no commands.
"""

from __future__ import annotations

from collections.abc import Callable

from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.storage.names.subscribers import Kind
from rlite_pubsub.storage.store import Store


class Delivery:
    """What a process has of a store that it has opened."""

    def __init__(self, store: Store, kind: Kind, joined: Callable[[], None]) -> None:
        """`kind` of subscriber, as the store's records have it; `joined` is called when it has become one."""
        from rlite_pubsub.durable.mailbox import DurablePost
        from rlite_pubsub.pubsub.membership import Membership  # a third of what a program that publishes imports

        self.store = store
        self.mail = DurablePost(store)
        self.membership = Membership(store, self.mail, joined, kind)
        self.post = self.membership.post
        self.agenda = self.membership.agenda
        self.rules = Rules(store.data, store)
        self.hub = Hub(
            self.membership.record, self.membership.neighbours, self.membership.post, self.agenda, self.rules
        )
