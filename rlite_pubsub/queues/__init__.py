"""Queues with their whole history, over a folder, a URL or a client: every subscriber has a place of its own.

    from rlite_pubsub import queues

    jobs = queues.create_queue("./store", "jobs")
    jobs.push(b"one", b"two")
    worker = jobs.create_subscriber("worker")           # from the beginning; or start="end", an id, a datetime
    worker.pop().value                                  # b"one"
    worker.peek().value                                 # b"two"
    worker.id                                           # "jobs:worker": get_subscriber("./store", "jobs:worker")
    worker.sleep()                                      # its place is kept, in any number of processes and restarts
"""

from __future__ import annotations

from rlite_pubsub.queues import aio
from rlite_pubsub.queues.codec import Codec, Undecodable
from rlite_pubsub.queues.errors import NoSuchQueue, NoSuchSubscriber, SubscriberAsleep
from rlite_pubsub.queues.item import Item, LeasedItem, Start
from rlite_pubsub.queues.queue import Queue, create_queue, get_queue, get_subscriber, list_queues
from rlite_pubsub.queues.requests import QueueNames, SubscriberStatus
from rlite_pubsub.queues.subscriber import Subscriber

__all__ = [
    "Codec",
    "Item",
    "LeasedItem",
    "NoSuchQueue",
    "NoSuchSubscriber",
    "Queue",
    "QueueNames",
    "Start",
    "Subscriber",
    "SubscriberAsleep",
    "SubscriberStatus",
    "Undecodable",
    "aio",
    "create_queue",
    "get_queue",
    "get_subscriber",
    "list_queues",
]
