"""The build of this package: which of its modules are compiled where there is a compiler, and whether they are here.

setup.py reads the tables from this file, and imports nothing else of the package.
"""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path
from typing import Final

COMPILED: Final = """
rlite_pubsub.build
rlite_pubsub.commands.collections.hash_counters
rlite_pubsub.commands.collections.hashes
rlite_pubsub.commands.collections.list_moves
rlite_pubsub.commands.collections.lists
rlite_pubsub.commands.collections.sets
rlite_pubsub.commands.connection.connection
rlite_pubsub.commands.connection.transactions
rlite_pubsub.commands.keys.generic
rlite_pubsub.commands.scripts.evaluating
rlite_pubsub.commands.sorted_sets.ranges
rlite_pubsub.commands.sorted_sets.removing
rlite_pubsub.commands.sorted_sets.sorted_sets
rlite_pubsub.commands.streams.read
rlite_pubsub.commands.streams.streams
rlite_pubsub.commands.streams.trim
rlite_pubsub.commands.strings.bit_fields
rlite_pubsub.commands.strings.counters
rlite_pubsub.commands.strings.many
rlite_pubsub.commands.strings.strings
rlite_pubsub.commands.topics.append
rlite_pubsub.embedded.host
rlite_pubsub.embedded.line
rlite_pubsub.embedded.request
rlite_pubsub.embedded.service
rlite_pubsub.engine.arguments.floats
rlite_pubsub.engine.arguments.hash_lookup
rlite_pubsub.engine.arguments.integers
rlite_pubsub.engine.arguments.lookup
rlite_pubsub.engine.arguments.score_ranges
rlite_pubsub.engine.arguments.set_options
rlite_pubsub.engine.arguments.sorted_set_lookup
rlite_pubsub.engine.arguments.sorted_set_storing
rlite_pubsub.engine.arguments.stream_arguments
rlite_pubsub.engine.arguments.stream_ids
rlite_pubsub.engine.client
rlite_pubsub.engine.commit
rlite_pubsub.engine.counters
rlite_pubsub.engine.dispatch
rlite_pubsub.engine.engine
rlite_pubsub.engine.eviction.memory_limit
rlite_pubsub.engine.eviction.usage
rlite_pubsub.engine.eviction.victims
rlite_pubsub.engine.expiry
rlite_pubsub.engine.field_expiry
rlite_pubsub.engine.key_places
rlite_pubsub.engine.scripts.cache
rlite_pubsub.engine.scripts.conversions
rlite_pubsub.engine.scripts.run
rlite_pubsub.engine.scripts.runner
rlite_pubsub.engine.session
rlite_pubsub.engine.stats.latency
rlite_pubsub.engine.stats.slowlog
rlite_pubsub.engine.table
rlite_pubsub.engine.topics.short_append
rlite_pubsub.engine.topics.trimming
rlite_pubsub.engine.tracking.invalidation
rlite_pubsub.engine.tracking.notifications
rlite_pubsub.engine.turn
rlite_pubsub.engine.waits.alarm
rlite_pubsub.engine.waits.blocking
rlite_pubsub.engine.waits.other_processes
rlite_pubsub.engine.waits.pause
rlite_pubsub.engine.waits.waiter
rlite_pubsub.keyspace.collection
rlite_pubsub.keyspace.databases
rlite_pubsub.keyspace.geohash
rlite_pubsub.keyspace.hashes
rlite_pubsub.keyspace.hyperloglog
rlite_pubsub.keyspace.keyspace
rlite_pubsub.keyspace.lists
rlite_pubsub.keyspace.news
rlite_pubsub.keyspace.packing
rlite_pubsub.keyspace.part
rlite_pubsub.keyspace.records
rlite_pubsub.keyspace.sets
rlite_pubsub.keyspace.sorted_sets
rlite_pubsub.keyspace.sweeping
rlite_pubsub.keyspace.times
rlite_pubsub.keyspace.topic.append
rlite_pubsub.keyspace.topic.hot_log
rlite_pubsub.keyspace.topic.nodes
rlite_pubsub.keyspace.topic.stretch
rlite_pubsub.keyspace.topic.topic
rlite_pubsub.keyspace.topic.trimming
rlite_pubsub.links.entry_bytes
rlite_pubsub.links.envelope
rlite_pubsub.links.held
rlite_pubsub.links.markers
rlite_pubsub.links.switchboard
rlite_pubsub.protocol.batch
rlite_pubsub.protocol.encoder
rlite_pubsub.protocol.entries
rlite_pubsub.protocol.parser
rlite_pubsub.pubsub.backlog
rlite_pubsub.pubsub.hub
rlite_pubsub.pubsub.kinds
rlite_pubsub.pubsub.neighbours
rlite_pubsub.pubsub.outbox
rlite_pubsub.pubsub.post
rlite_pubsub.pubsub.pressure
rlite_pubsub.pubsub.publish
rlite_pubsub.pubsub.route
rlite_pubsub.pubsub.session
rlite_pubsub.server.connection
rlite_pubsub.server.connections
rlite_pubsub.server.secure_connection
rlite_pubsub.server.secure_wire
rlite_pubsub.server.turns
rlite_pubsub.storage.agenda
rlite_pubsub.storage.checkpoints.checkpoint
rlite_pubsub.storage.checkpoints.deltas
rlite_pubsub.storage.checkpoints.safety
rlite_pubsub.storage.databases
rlite_pubsub.storage.journal.journal
rlite_pubsub.storage.journal.recording
rlite_pubsub.storage.journal.shared_commit
rlite_pubsub.storage.keys.digests
rlite_pubsub.storage.keys.elements
rlite_pubsub.storage.keys.fields
rlite_pubsub.storage.keys.garbage
rlite_pubsub.storage.keys.key_records
rlite_pubsub.storage.keys.members
rlite_pubsub.storage.keys.order
rlite_pubsub.storage.keys.ranks
rlite_pubsub.storage.keys.rows
rlite_pubsub.storage.keys.scores
rlite_pubsub.storage.keys.words
rlite_pubsub.storage.lmdb_environment
rlite_pubsub.storage.log.environment
rlite_pubsub.storage.log.log
rlite_pubsub.storage.log.transaction
rlite_pubsub.storage.mail.letters
rlite_pubsub.storage.mail.mailboxes
rlite_pubsub.storage.pages.tree
rlite_pubsub.storage.topics.chunks
rlite_pubsub.storage.topics.entry_ids
rlite_pubsub.storage.turn
""".split()
"""What each request passes, compiled by mypyc. A module belongs here if scripts/bench shows that it pays."""

WRITTEN_IN_C: Final = """
rlite_pubsub.protocol._bulk_array
rlite_pubsub.protocol._cut
rlite_pubsub.engine.scripts._crossing
rlite_pubsub.server._wires
rlite_pubsub.storage.keys._key_bytes
rlite_pubsub.storage.window._window
""".split()
"""What is C in itself, and for Linux only; a pure package does without (encoder.py, batch.py, crossing.py, wires.py and
key_bytes.py beside them)."""

_PACKAGE: Final = Path(__file__).resolve().parent
_state: list[str] = []


def pure_modules() -> list[str]:
    """Return those of the two tables that this package, the one that was imported, has not compiled."""
    names = [*COMPILED, *WRITTEN_IN_C] if sys.platform == "linux" else COMPILED
    return [name for name in names if not _has_extension(_PACKAGE.joinpath(*name.split(".")[1:]))]


def _has_extension(module: Path) -> bool:
    """Return whether importing this module loads machine code: Python prefers that to a source beside it."""
    return any(Path(f"{module}{suffix}").is_file() for suffix in importlib.machinery.EXTENSION_SUFFIXES)


def is_compiled() -> bool:
    """Return whether all of them are compiled."""
    return state() == "compiled"


def state() -> str:
    """Return `compiled`, `pure Python`, or what is between them: an installation that is damaged."""
    if not _state:
        of, pure = len(COMPILED) + len(WRITTEN_IN_C) * (sys.platform == "linux"), len(pure_modules())
        part = f"damaged: {pure} of {of} modules are not compiled" if pure < of else "pure Python"
        _state.append(part if pure else "compiled")
    return _state[0]


def shadowing(folder: Path) -> Path | None:
    """Return the package that `python -c` and `python -m` import if they are started in this folder, and not this one:
    Python looks there first. A checkout has its sources at the top, and they are never compiled."""
    other = folder / "rlite_pubsub"
    return other if (other / "__init__.py").is_file() and other.resolve() != _PACKAGE else None
