"""The groups that still refer to an entry of a topic: those that it was not delivered to yet, those whose consumers
have it pending, and those that will deliver it again.

The topic comes from `Keyspace.for_change`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups import pending as pending_changes
from rlite_pubsub.groups import release
from rlite_pubsub.storage.groups import pending, released
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.topics.entry_ids import Id


class References:
    """Knows which entries of a topic groups still refer to, as long as nobody changes its groups."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._groups = _groups_of(topic)

    @property
    def read_to(self) -> Id:
        """The last entry that was delivered to every group."""
        return min((group.last_id for group in self._groups), default=entry_ids.MAX)

    def hold(self, packed: bytes) -> bool:
        """Return whether anybody refers to this entry."""
        return any(_holds(group, packed) for group in self._groups)

    def forget(self, packed_ids: bytes) -> None:
        """Forget these entries, pending or to be delivered again, in every group. They are in order, each once."""
        for group in self._groups:
            if group.pending_count:
                pending_changes.acknowledge(group, packed_ids)
            release.forget(group, packed_ids)


def _groups_of(topic: Topic) -> list[Group]:
    if not topic.group_count:
        return []
    names = [record.name for record in topic.stored_groups(topic.settle())]
    found = [groups.group_of(topic, name) for name in names]
    return [group for group in found if group is not None]


def _holds(group: Group, packed: bytes) -> bool:
    if entry_ids.unpack(packed) > group.last_id:
        return True
    txn = group.topic.keyspace.writing()
    if group.pending_count:
        run = pending.covering(txn, group.of_group, packed)
        if run is not None and any(run.ids[at : at + BYTES] == packed for at in range(0, len(run.ids), BYTES)):
            return True
    return bool(group.settings.released) and released.get(txn, release.of_group(group), packed) is not None
