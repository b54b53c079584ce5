"""Warnings of what is wrong, for the page, /api/warnings, INFO, `rlite-pubsub top` and alerts.

The thresholds are directives (`warn-…`; 0 turns a warning off). Looking costs the server little: groups take at most a
small share of its time, and what was found stands until the next look.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.waits.writer_wait import SAY_AFTER_S
from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic.cold_shelf import if_here
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.keys.key_records import TOPIC
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.stats.connections import UnsentBytes
    from rlite_pubsub.engine.waits.writer_wait import WriterWaits
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.census import CensusEntry
    from rlite_pubsub.storage.incidents import Incident
    from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

CRITICAL, WARNING, NOTE = "critical", "warning", "note"
"""A note is nothing wrong: a restart, for who wonders why counters begin again."""
_ORDER = (CRITICAL, WARNING, NOTE)
GROWTH_S = 120.0
"""A lag that has grown from look to look for so long, and by `LEAST_GROWTH`, is a warning before it is large."""
LEAST_GROWTH = 1000
STUCK_S, STUCK_BYTES = 60.0, 64 << 10
"""A client that accepts nothing for so long, though the kernel has so much for it, is slow, whatever the threshold."""
MOST_LAGS = 10_000
"""Groups whose growth is known."""
_NOTES = {"server_started"}
_COUNTED = {
    "messages_dropped": ("message", "messages"),
    "entries_lost": ("entry", "entries"),
    "dead_letters": ("dead letter", "dead letters"),
}
"""What is counted by these."""
LOOKING_SHARE = 0.02
"""The share of the time that looking at groups may take."""
MOST_OF_A_KIND = 50
"""How many subscribers, groups or connections are shown, of each kind."""


class Warning(NamedTuple):
    """One thing that is wrong."""

    code: str
    """One of CODES."""
    severity: str
    subject: tuple[bytes, ...]
    """What it is about: a subscriber, a topic and its group, a file, or a connection's id."""
    text: str


CODES = {
    "subscriber_away": "A durable subscriber is away, and much waits for it, or has waited for long.",
    "group_lagging": "A consumer group has many entries yet to read.",
    "connection_slow": "A connection does not take much of what waits for it.",
    "store_near_quota": "The store is near its quota.",
    "store_full": "The store is full, and accepts nothing more.",
    "disk_nearly_full": "The disk of the store is nearly full.",
    "sync_failing": "What was committed can't be brought to the disk.",
    "commit_failing": "What was written can't be committed.",
    "writer_stopped": "A process is stopped while it holds the writer's lock.",
    "writer_busy": "A process has held the writer's lock for long.",
    "old_reader": "A reader keeps free pages from being used again.",
    "process_dead": "A process has died and was not cleaned up yet.",
    "backup_behind": "The continuous backup is behind, or has not begun.",
    "link_down": "A link to another server is down.",
    "cut_off": "A subscriber was too slow, and was cut off at its limit: it has lost messages.",
    "messages_dropped": "A subscriber was too slow, or away for too long, and has lost its oldest messages.",
    "store_was_full": "The store or its disk was full, and writes were refused.",
    "entries_lost": "A reader of a topic was slower than its retention, and has lost entries.",
    "dead_letters": "Entries were delivered as often as their group allows, and were not acknowledged.",
    "companion_ended": "A process that works beside the server ended by itself, and was started again.",
    "server_died": "A server ended without shutting down.",
    "server_started": "A server began on a store that was there before: its counters begin again.",
}
"""The meaning of each, in a sentence. Those behind `link_down` are incidents (storage/incidents.py), and stay for an
hour."""
ADVICE = {
    "subscriber_away": "Start its client again, or remove it: SUBSCRIBER.DELETE NAME.",
    "group_lagging": "Add consumers, see that they acknowledge what they read, or resume the group: TOPIC.RESUME.",
    "connection_slow": "See what its client does: it reads more slowly than it is sent to (SUBSCRIBER.CLIENTS).",
    "store_near_quota": "Shorten retention, delete what is not needed, or start with a larger store-quota.",
    "store_full": "Delete what is not needed, shorten retention, make room on the disk, or raise store-quota.",
    "disk_nearly_full": "Make room on the disk, or give free pages of the store back: rlite-pubsub compact.",
    "sync_failing": "Look at the server's log, and at the kernel's messages about the disk: dmesg.",
    "commit_failing": "Look at the server's log: the write was refused, and its client was told so.",
    "writer_stopped": "Let the process go on (kill -CONT PID), or end it.",
    "writer_busy": "See whether a large transaction or script is running: SLOWLOG GET.",
    "old_reader": "Let the process go on, or end it: until then the file can't use those pages again.",
    "process_dead": "Wait a moment; if it stays, run rlite-pubsub doctor on the store's folder.",
    "backup_behind": "See INFO persistence for the last error, and that the place of the backup can be reached.",
    "link_down": "See LINK INFO for the reason, and that the other server can be reached.",
    "cut_off": "Have its client read faster, raise client-output-buffer-limit, or make it durable.",
    "messages_dropped": "Have it come back sooner or read faster, or raise its limits (MAXBYTES, MAXLEN).",
    "store_was_full": "See that it does not come again: raise store-quota, shorten retention, or enlarge the disk.",
    "entries_lost": "Have the reader read faster, or lengthen the topic's retention: TOPIC.CONFIG.",
    "dead_letters": "Look at them, mend the consumer, and give them back: the page's view of the group does so.",
    "companion_ended": "Look at the server's log for the reason; it is started again by itself.",
    "server_died": "Look at the server's log, and at the kernel's (dmesg), for what has ended it.",
    "server_started": "Nothing, if somebody has restarted it.",
}
"""What to do about each."""


class Warnings:
    """Finds what is wrong with the store and the server."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        keyspace: Keyspace,
        writer_waits: WriterWaits,
        sessions: Mapping[int, Client],
        commit_failure: Callable[[], Exception | None],
        now_ms: Callable[[], int],
        stuck: Callable[[float], list[tuple[Client, UnsentBytes]]],
        stopwatch: Callable[[], float],
    ) -> None:
        """`stuck`: the connections that have accepted nothing for so many seconds."""
        self._settings = settings
        self._store = store
        self._keyspace = keyspace
        self._writer_waits = writer_waits
        self._sessions = sessions
        self._commit_failure = commit_failure
        self._now_ms = now_ms
        self._stuck = stuck
        self._stopwatch = stopwatch
        self._sizes: dict[bytes, int] = {}  # of the mailboxes of away subscribers, at the last look
        self._groups: list[Warning] = []
        self._groups_commit: int | None = None  # when they were looked at
        self._groups_limit = -1
        self._look_again_at = 0.0
        self._lags: dict[tuple[bytes, bytes], _Growth] = {}

    def all(self, census: Sequence[CensusEntry]) -> list[Warning]:
        """Return all warnings, the worst first. `census`: the subscribers of the store. Never fails."""
        found: list[Warning] = []
        groups = self._of_groups, self._of_connections
        for look in (self._of_writing, self._of_room, self._of_readers, *groups, self._of_incidents):
            try:
                found += look()
            except StoreError as failure:
                log.debug("Can't look for warnings: %s", failure)
        found += self._of_subscribers(census)
        return sorted(found, key=lambda each: _ORDER.index(each.severity))

    def _of_incidents(self) -> Iterator[Warning]:
        """What happened within the last hour, the latest first; without what is told as it is going on."""
        full = {environment.path.name.encode() for environment in (self._store.data, self._store.live)
                if environment.room.full is not None}  # fmt: skip
        for warning in of_incidents(self._store.incidents.recent(), self._now_ms()):
            if warning.code != "store_was_full" or warning.subject[0] not in full:
                yield warning

    # -- writing

    def _of_writing(self) -> Iterator[Warning]:
        data, failure = self._store.data, self._commit_failure()
        if data.safety.failure is not None:
            yield Warning("sync_failing", CRITICAL, (b"data.mdb",), f"Can't sync to the disk: {data.safety.failure}")
        if failure is not None and failure is not data.room.full:
            yield Warning("commit_failing", CRITICAL, (b"data.mdb",), f"The last write failed: {failure}")
        told = set()
        for held in self._writer_waits.holdings():
            if held.seconds >= SAY_AFTER_S:
                told.add(held.environment)
                yield _held(held.environment, held.holder.is_stopped, f"{held.holder}, for {held.seconds:.0f} s")
        for environment in (data, self._store.live):
            holder = environment.writer.holder() if environment.writer is not None else None
            if holder is not None and holder.is_stopped and environment.path.name not in told:
                yield _held(environment.path.name, True, str(holder))

    # -- room

    def _of_room(self) -> Iterator[Warning]:
        percent, disk_percent = self._settings["warn-quota-percent"], self._settings["warn-disk-percent"]
        for environment in (self._store.data, self._store.live):
            name = environment.path.name.encode()
            if environment.room.full is not None:
                yield Warning("store_full", CRITICAL, (name,), str(environment.room.full))
                continue
            quota = environment.quota_bytes
            if not percent or quota >= UNLIMITED_QUOTA_BYTES:
                continue
            live = environment.account.sizes().live
            if 100 * live >= percent * quota:
                text = f"{name.decode()} uses {live * 100 // quota} % of store-quota ({_bytes(quota)})"
                yield Warning("store_near_quota", WARNING, (name,), text)
        disk = disk_of(self._store)
        if disk_percent and disk is not None and 100 * (disk[0] - disk[1]) >= disk_percent * disk[0]:
            text = f"The disk of {self._store.folder} has {_bytes(disk[1])} left of {_bytes(disk[0])}"
            yield Warning("disk_nearly_full", WARNING, (os.fsencode(self._store.folder),), text)

    def _of_readers(self) -> Iterator[Warning]:
        for environment in (self._store.data, self._store.live):
            for each in environment.account.old_readers():
                yield Warning(
                    "old_reader",
                    WARNING,
                    (environment.path.name.encode(), b"%d" % each.pid),
                    f"{environment.path.name} can't use free pages again: {each} "
                    f"has been reading for {each.age_s:.0f} seconds",
                )

    # -- who is behind

    def _of_subscribers(self, census: Sequence[CensusEntry]) -> Iterator[Warning]:
        most_bytes, most_s = self._settings["warn-mailbox-bytes"], self._settings["warn-mailbox-age"]
        now_ms, sizes, told = self._now_ms(), {}, 0
        for entry in census:
            if entry.state == "dead":
                record = entry.process.record if entry.process is not None else None
                pid = record.pid if record is not None else 0
                where = f" on {record.host}" if record is not None and record.host != os.uname().nodename else ""
                text = f"Process {pid}{where} died and was not cleaned up yet"
                yield Warning("process_dead", WARNING, (b"%d" % pid,), text)
            if entry.state != "away" or entry.durable is None:
                continue
            name, waiting = entry.durable.name, entry.waiting
            sizes[name] = size = waiting.backlog.bytes
            age_s = waiting.age_ms(now_ms) / 1000
            is_large, is_old = 0 < most_bytes <= size, 0 < most_s <= age_s
            if (is_large or is_old) and told < MOST_OF_A_KIND:
                told += 1
                grows = ", and it grows" if size > self._sizes.get(name, size) else ""
                text = (
                    f"{waiting.backlog.messages:,} messages ({_bytes(size)}) wait, the oldest for {_time(age_s)}{grows}"
                )
                yield Warning("subscriber_away", WARNING, (name,), text)
        self._sizes = sizes

    def _of_connections(self) -> Iterator[Warning]:
        most = self._settings["warn-connection-bytes"]
        if not most:
            return
        for session, unsent in self._stuck(STUCK_S)[:MOST_OF_A_KIND]:
            if unsent.size >= STUCK_BYTES and session.outbox.waiting_bytes < most:
                name = f" ({session.name.decode(errors='backslashreplace')})" if session.name else ""
                text = (
                    f"Connection {session.id}{name} from {session.address} has accepted nothing for "
                    f"{_time(self._now_ms() / 1000 - unsent.since)}; {_bytes(unsent.size)} wait for it in the kernel"
                )
                yield Warning("connection_slow", WARNING, (b"%d" % session.id, session.name), text)
        slow = [(session.outbox.waiting_bytes, session) for session in self._sessions.values()]
        slow = sorted([each for each in slow if each[0] >= most], key=lambda each: -each[0])
        for waiting, session in slow[:MOST_OF_A_KIND]:
            name = f" ({session.name.decode(errors='backslashreplace')})" if session.name else ""
            text = f"{_bytes(waiting)} wait for connection {session.id}{name} from {session.address}"
            yield Warning("connection_slow", WARNING, (b"%d" % session.id, session.name), text)

    def _of_groups(self) -> list[Warning]:
        most, now, keyspace = self._settings["warn-group-lag"], self._stopwatch(), self._keyspace
        if not most:
            return []
        commit = keyspace.last_commit()
        is_same = commit == self._groups_commit and most == self._groups_limit
        if not is_same and (now >= self._look_again_at or most != self._groups_limit):
            began = perf_counter()
            self._groups = sorted(self._lagging(most, now), reverse=True)[:MOST_OF_A_KIND]
            self._groups_commit, self._groups_limit = commit, most
            self._look_again_at = now + (perf_counter() - began) / LOOKING_SHARE
        return self._groups

    def _lagging(self, most: int, now: float) -> Iterator[Warning]:
        keyspace = self._keyspace
        for name in [name for name, type in keyspace.databases.walk(0) if type == TOPIC]:
            topic = keyspace.find(0, name)
            if not isinstance(topic, Topic) or not topic.group_count:
                continue
            for group in all_groups(topic):
                lag = if_here(topic.keyspace.cold.shelf, lambda group=group: group.lag)  # type: ignore[misc]
                if lag is None:
                    continue
                told = "1 entry is yet to be read" if lag == 1 else f"{lag:,} entries are yet to be read"
                growth = self._lags.get((name, group.name))
                if growth is None or lag < growth.last:
                    growth = self._lags[name, group.name] = _Growth(now, lag, lag)
                    if len(self._lags) > MOST_LAGS:
                        del self._lags[next(iter(self._lags))]
                growth.last = lag
                since_s, more = now - growth.began, lag - growth.first
                if more >= LEAST_GROWTH and since_s >= GROWTH_S:
                    told += f", {more:,} more than {_time(since_s)} ago"
                    yield Warning("group_lagging", WARNING, (name, group.name), told)
                elif lag >= most:
                    yield Warning("group_lagging", WARNING, (name, group.name), told)


class _Growth:
    """The lag of a group since it has only grown."""

    __slots__ = ("began", "first", "last")

    def __init__(self, began: float, first: int, last: int) -> None:
        self.began = began
        self.first = first
        self.last = last


def of_incidents(incidents: Iterable[Incident], now_ms: int) -> Iterator[Warning]:
    """Yield a warning for each incident, or a note: at most `MOST_OF_A_KIND` of a kind."""
    told: Counter[str] = Counter()
    for each in incidents:
        told[each.code] += 1
        if each.code in CODES and told[each.code] <= MOST_OF_A_KIND:
            yield Warning(each.code, NOTE if each.code in _NOTES else WARNING, each.subject, _of_incident(each, now_ms))


def _of_incident(incident: Incident, now_ms: int) -> str:
    times = f" ({incident.times:,} times)" if incident.times > 1 else ""
    if incident.code in _COUNTED:
        one, many = _COUNTED[incident.code]
        times = f" (1 {one})" if incident.times == 1 else f" ({incident.times:,} {many})"
    return f"{_time(max(0, now_ms - incident.last_ms) / 1000)} ago: {incident.text}{times}"


def disk_of(store: Store) -> tuple[int, int] | None:
    """Return (bytes, bytes free for us) of the file system of the store's folder; None if they cannot be read."""
    try:
        found = os.statvfs(store.folder)
    except OSError:
        return None
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _time(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _held(name: str, is_stopped: bool, who: str) -> Warning:
    code, severity = ("writer_stopped", CRITICAL) if is_stopped else ("writer_busy", WARNING)
    return Warning(code, severity, (name.encode(),), f"{name} can't be written: {who}")
