"""Trimming a topic to a length or from an id on: exactly, or (`~`) by the nodes that redis-server would have.

An approximate trim removes whole nodes, as many as fit into its limit, and looks at no entry where there is none to
remove. In the cold part a block is what a node is elsewhere, whatever the limit says: it goes at once, unread.
"""

from __future__ import annotations

from collections.abc import Callable

from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

# The topic comes from `Keyspace.for_change`. Each function answers how many entries it has removed, and calls `going`
# before it removes the oldest, with how many.


def in_silence(count: int) -> None:
    """Nobody minds."""


def to_length(topic: Topic, max_length: int, going: Callable[[int], None] = in_silence) -> int:
    """Keep the newest `max_length` entries."""
    excess = topic.length - max_length
    going(excess)
    return topic.trim(excess)


def from_id(topic: Topic, min_id: Id, going: Callable[[int], None] = in_silence) -> int:
    """Keep the entries from this id on."""
    end = entry_ids.before(min_id)
    if end is None:
        return 0
    if topic.nodes.drop_empty(min_id):
        topic.keyspace.keep(topic)
    below = sum([part.count for part in topic.between(end=end)])
    going(below)
    return topic.trim(below, min_id)


def about_to_length(
    topic: Topic, max_length: int, limit: int, going: Callable[[int], None] = in_silence
) -> int:
    """Remove nodes as long as `max_length` entries are left, and no more than `limit` entries (0: any number)."""
    removed = 0
    while topic.cold_live and topic.length - topic.cold.state.first_live >= max_length:
        going(topic.cold.state.first_live)
        removed += topic.trim_first_block()
    while topic.length > max_length and not topic.cold_live:
        known = topic.nodes.known
        if known and topic.length - known[0].live < max_length:
            break  # and what else may be in that node can only make it less
        node = topic.nodes.first(topic.node_limits)
        if node is None or (limit and removed + node.live > limit) or topic.length - node.live < max_length:
            break
        removed += node.live
        going(node.live)
        topic.trim_first_node()
    return removed


def about_from_id(topic: Topic, min_id: Id, limit: int, going: Callable[[int], None] = in_silence) -> int:
    """Remove nodes that are wholly below an id, and no more than `limit` entries (0: any number)."""
    removed = 0
    while topic.cold_live and (block := topic.cold.first_block) is not None and block.last < min_id:
        going(topic.cold.state.first_live)
        removed += topic.trim_first_block()
    while not topic.cold_live:
        known = topic.nodes.known
        if known and known[0].last >= min_id:
            break
        node = topic.nodes.first(topic.node_limits)
        if node is None or (limit and removed + node.live > limit) or node.last >= min_id:
            break
        removed += node.live
        going(node.live)
        topic.trim_first_node()
    return removed
