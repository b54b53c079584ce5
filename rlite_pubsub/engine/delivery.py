"""A process's part in its store before it executes commands: its place among the subscribers, and the hub.

A server has it, and so does a program without one, which may need no more: a program that only publishes executes no
commands.
"""

from __future__ import annotations

from collections.abc import Callable

from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.storage.names.subscribers import Kind
from rlite_pubsub.storage.store import Store


class Delivery:
    """What a process holds of a store that it has opened."""

    def __init__(self, store: Store, kind: Kind, joined: Callable[[], None]) -> None:
        """`kind` of subscriber, as the store records it; `joined` is called once the process has become one."""
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
