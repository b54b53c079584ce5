"""The store's role as a replica, as one process knows it, and what that forbids.

`replicaof` is the store's, so all of its processes are replicas together: none writes keys, and none removes expired
keys, for the master says when. One server has the link (replication/follower.py), and executes what the master sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rlite_pubsub.protocol import errors
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Error
from rlite_pubsub.storage.commons import replica_position

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.engine.waits.blocking import Waiting
    from rlite_pubsub.keyspace.keyspace import Keyspace

CONNECT, CONNECTING, HANDSHAKE, SYNC, CONNECTED = b"connect", b"connecting", b"handshake", b"sync", b"connected"
"""The state of the link, in ROLE's words."""
_WHY: Final = "a replica"
_OBEYED_WHILE_LOADING: Final = frozenset((b"replicaof", b"slaveof"))
"""Redis waits for the file that it loads; here a load can wait for a master that never comes back."""
_UNBLOCKED: Final = Error(
    b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)


class Replication:
    """Knows whether the store is a replica, and the state of its master."""

    def __init__(self, settings: Settings, keyspace: Keyspace, waiting: Waiting, look_out: Callable[[], None]) -> None:
        self.master: tuple[bytes, int] | None = None
        self.is_loading = False
        """The master's file is being loaded: the keyspace is incomplete."""
        self.link = CONNECT
        self.offset = -1
        """The offset in the master's history; -1 if unknown."""
        self._read_offset = -1
        self.heard_at = 0.0
        """When the master last said something, on the engine's stopwatch; 0: never."""
        self.down_since = 0.0
        self.is_followed_here = False
        self.askers: set[int] = set()
        """Sessions that want only a file, by id."""
        self._settings = settings
        self._keyspace = keyspace
        self._waiting = waiting
        self._look_out = look_out
        self._turned: Callable[[], None] = _nothing
        settings.on_change("replicaof", self._obey)
        settings.on_change("replica-read-only", lambda _: self._see_who_writes())
        self._follow(settings["replicaof"])

    def turn_by(self, turned: Callable[[], None]) -> None:
        """Call `turned` when the store gets another master, or none."""
        self._turned = turned

    def _obey(self, master: tuple[bytes, int] | None) -> None:
        self._follow(master)
        if master is not None:
            self._waiting.end_all(_UNBLOCKED)  # or they would take what the master's other replicas keep
        self._look_out()
        self._turned()

    def _follow(self, master: tuple[bytes, int] | None) -> None:
        self.master = master
        times = self._keyspace.times
        if master is None:
            self.is_loading = False
            times.go_on(_WHY)
        else:
            times.hold(_WHY)
        self._keyspace.stored.expiring_here.clear()  # the next master, or this store, says what becomes of them
        self._see_who_writes()
        self.see(CONNECT)

    def _see_who_writes(self) -> None:
        self._keyspace.times.is_writable_replica = self.master is not None and not self._settings["replica-read-only"]

    def look(self) -> None:
        """Look whether another process has begun or finished loading. Raises StoreError."""
        if self.master is not None:
            position = self._keyspace.environment.read(replica_position.get)
            self.is_loading = position is not None and not position.is_whole
            if not self.is_followed_here:
                self.offset = position.offset if position is not None else -1

    def see(self, link: bytes, since: float = 0.0) -> None:
        """Note the state of the link."""
        self.link = link
        self.down_since = since

    def hear(self, now: float, offset: int) -> None:
        """Note that the master has said something, and its offset."""
        self.heard_at = now
        self.offset = self._read_offset = offset

    def note_read(self, offset: int) -> None:
        """Note how far the master has been read; what it says is not executed yet."""
        self._read_offset = offset

    @property
    def read_offset(self) -> int:
        """How far the master has been read: in a pause further than `offset`."""
        return max(self._read_offset, self.offset) if self.is_followed_here else self.offset

    def check(self, session: Client, command: Command, asked: list[frozenset[str]]) -> None:
        """Check that a replica may execute this command; `asked` are its flags, and for EXEC those of each that is
        queued. Raises CommandError."""
        if session.obeys_master:
            return
        if self._settings["replica-read-only"] and any(["write" in flags for flags in asked]):
            raise CommandError(errors.READ_ONLY_REPLICA)
        if self.is_loading and "loading" not in command.flags and command.name not in _OBEYED_WHILE_LOADING:
            raise CommandError(errors.LOADING)
        if self.hides_stale_data and not all(["stale" in flags for flags in asked]):
            raise CommandError(errors.MASTER_DOWN)

    def check_script(self, session: Client, says_that_it_writes: bool, allows_stale: bool) -> None:
        """Check that a replica may run such a script. Raises CommandError."""
        if says_that_it_writes and self.refuses_writes_of(session):
            raise CommandError(errors.READ_ONLY_REPLICA)
        if not allows_stale and not session.obeys_master and self.hides_stale_data:
            raise CommandError(errors.MASTER_DOWN)

    @property
    def hides_stale_data(self) -> bool:
        """Whether the master is gone, and what it has said is not to be told without it."""
        if self.master is None or self._settings["replica-serve-stale-data"]:
            return False
        return self.is_followed_here and self.link != CONNECTED

    def refuses_writes_of(self, session: Client) -> bool:
        """Return whether scripts of this session may write no keys."""
        return self.master is not None and self._settings["replica-read-only"] and not session.obeys_master


def _nothing() -> None:
    """Do nothing: nobody has the link."""
