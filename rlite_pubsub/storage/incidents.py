"""What has happened to a store within the last hour that its operator should know: in live.mdb, so that every process
and every tool tells the same, whichever noticed it.

    key    \\0 "incident" digest of code and subject (16 bytes)
    value  first ms u64, last ms u64, times u64, JSON: [code, text, part of the subject, …]

Incidents of the same code and subject are one record, whose text is the last one's. Noting costs no transaction: what
was noted is written by `write`, once a second; what cannot be written, since the store is full, is told by the process
that noted it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from time import monotonic, time
from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub.storage import databases

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Environment, Txn

KEPT_MS: Final = 3_600_000
WRITE_SECONDS: Final = 1.0
MOST: Final = 200
"""Records; the oldest go first."""
_MOST_NOTED: Final = 1000
_DIGEST_BYTES: Final = 16
_TIMES: Final = Struct(">QQQ")
_SHOWN_BYTES: Final = 200
"""Of each part of a subject."""


class Incident(NamedTuple):
    """Something that has happened, once or again and again."""

    code: str
    subject: tuple[bytes, ...]
    text: str
    times: int
    first_ms: int
    last_ms: int

    def with_more(self, other: Incident) -> Incident:
        """Return both as one: the later text."""
        later = max(self, other, key=lambda each: each.last_ms)
        return later._replace(
            times=self.times + other.times,
            first_ms=min(self.first_ms, other.first_ms),
        )


class Incidents:
    """The incidents of one store, as one process notes and reads them. Any of its threads may."""

    def __init__(self, live: Environment) -> None:
        self._live = live
        self._noted: dict[bytes, Incident] = {}  # and not written yet
        self._lock = threading.Lock()
        self._write_at = 0.0

    def note(self, code: str, text: str, subject: tuple[bytes, ...] = (), times: int = 1) -> None:
        """Note that something has happened now, or so many times since the last note. Never fails."""
        now_ms = int(time() * 1000)
        subject = tuple(part[:_SHOWN_BYTES] for part in subject)
        with self._lock:
            _add(self._noted, Incident(code, subject, text, times, now_ms, now_ms))
            if len(self._noted) > _MOST_NOTED:
                del self._noted[next(iter(self._noted))]

    def cron(self) -> None:
        """Call `write`, once a second. Raises StoreError."""
        if self._noted and monotonic() >= self._write_at:
            self._write_at = monotonic() + WRITE_SECONDS
            self.write()

    def write(self) -> None:
        """Write what was noted. Raises StoreError, and tries again the next time."""
        if not self._noted:
            return
        with self._lock:
            noted, self._noted = self._noted, {}
        try:
            self._live.write(lambda txn: _put(txn, noted.values()), freeing=True)
        except BaseException:
            with self._lock:
                for each in noted.values():
                    _add(self._noted, each)
            raise

    def recent(self) -> list[Incident]:
        """Return those of the last hour, the latest first. Raises StoreError."""
        since_ms = int(time() * 1000) - KEPT_MS
        found = self._live.read(_all)
        with self._lock:
            for each in self._noted.values():
                _add(found, each)
        recent = [each for each in found.values() if each.last_ms > since_ms]
        return sorted(recent, key=lambda each: -each.last_ms)


def _add(found: dict[bytes, Incident], incident: Incident) -> None:
    key = _key(incident)
    known = found.get(key)
    found[key] = incident if known is None else known.with_more(incident)


def _key(incident: Incident) -> bytes:
    digest = blake2b(incident.code.encode(), digest_size=_DIGEST_BYTES)
    for part in incident.subject:
        digest.update(b"%d:" % len(part) + part)
    return databases.INCIDENTS + digest.digest()


def _all(txn: Txn) -> dict[bytes, Incident]:
    return {bytes(key): _unpacked(bytes(value)) for key, value in databases.items(txn, databases.INCIDENTS)}


def _put(txn: Txn, noted: Iterable[Incident]) -> None:
    """Add these, and remove what is too old or too much."""
    before = _all(txn)
    found = dict(before)
    for each in noted:
        _add(found, each)
    newest = sorted(reversed(found.items()), key=lambda item: -item[1].last_ms)[:MOST]  # of one ms, the last noted
    least_ms = newest[0][1].last_ms - KEPT_MS if newest else 0
    kept = {key: incident for key, incident in newest if incident.last_ms > least_ms}
    for key in before.keys() - kept.keys():
        txn.delete(key)
    for key, incident in kept.items():
        if before.get(key) != incident:
            txn.put(key, _packed(incident))


def _packed(incident: Incident) -> bytes:
    said = [incident.code, incident.text, *(part.decode("utf-8", "surrogateescape") for part in incident.subject)]
    return _TIMES.pack(incident.first_ms, incident.last_ms, incident.times) + json.dumps(said).encode()


def _unpacked(value: bytes) -> Incident:
    first_ms, last_ms, times = _TIMES.unpack_from(value)
    code, text, *subject = json.loads(value[_TIMES.size :])
    parts = tuple(part.encode("utf-8", "surrogateescape") for part in subject)
    return Incident(code, parts, text, times, first_ms, last_ms)
