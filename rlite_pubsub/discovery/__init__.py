"""Finding servers: on this machine, and in a directory that several machines share.

    import rlite_pubsub.discovery

    rlite_pubsub.discovery.on_this_machine()
    rlite_pubsub.discovery.in_directory("redis://directory.example", topic="orders")

Each answers a list of `ServerCard`.
"""

from rlite_pubsub.discovery.card import ServerCard
from rlite_pubsub.discovery.directory import in_directory
from rlite_pubsub.discovery.machine import on_this_machine

__all__ = ["ServerCard", "in_directory", "on_this_machine"]
