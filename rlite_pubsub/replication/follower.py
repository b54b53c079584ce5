"""The link of a store that is a replica: one server of the store has it, in a thread, and the loop does what it says.

Promises:
 - What the master says is executed in its order, and how far that is stands in the same commit: whoever goes on, after
   a cut, a kill -9 or a restart, asks for what comes behind, and leaves nothing out. Nothing is executed twice, but for
   messages, and functions that are loaded.
 - Where the master no longer has that, its keys take the place of all there are, but only once its file is here and
   proved whole: until then, and if it never is, clients see the old ones. Only while the keys are replaced are clients
   told LOADING. Whoever is killed in that asks for a new file when it is back; REPLICAOF is obeyed at any time.
 - Nothing is passed over: what can't be executed, because the store is full, clients are paused or another process
   writes, is executed later. Where another process turns to another master, nothing more of this one's is executed.
 - CLIENT LIST shows a link that stands, and CLIENT KILL cuts it; it comes back behind the transaction that did so.
 - Where the server ends, or is killed, another one of the same store takes the link (a lock file says who has it).
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.dispatch import execute
from rlite_pubsub.engine.functions.library import FunctionError
from rlite_pubsub.engine.replication import CONNECT, CONNECTED, CONNECTING, HANDSHAKE, SYNC
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.tls import TlsError, client_context
from rlite_pubsub.engine.stats.footprint import Footprint
from rlite_pubsub.engine.waits.loop_turns import LoopTurns
from rlite_pubsub.protocol.appended import Broken, Truncated
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.replication.loading import Loading
from rlite_pubsub.replication.master_link import MasterAddress, MasterLink, MasterPosition, MasterRefused
from rlite_pubsub.replication.received_file import ReceivedFile
from rlite_pubsub.replication.units import read_units
from rlite_pubsub.storage.commons import replica_position, shared_settings
from rlite_pubsub.storage.commons.replica_position import ReplicaPosition
from rlite_pubsub.storage.errors import StoreError, StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.replication.units import Unit
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.store import Store

log: Final = logging.getLogger("rlite_pubsub")

LOCK: Final = "replica.lock"
_RETRY_S: Final = 1.0
_ACK_S: Final = 1.0
_AT_ONCE: Final = 1000
_AT_ONCE_BYTES: Final = 1 << 20
_HELD_S: Final = 0.01
_NOBODY: Final = b"(superuser)"
_NOT_EXECUTED: Final = frozenset((b"PING", b"REPLCONF"))


class _Ended(Exception):
    """Nobody wants this link any more."""


class _Later(Exception):
    """What the master says can't be executed now, as clients' requests can't: nothing of it was done."""


class _Elsewhere(Exception):
    """The store is not where this link has left it."""


class _Killed(Exception):
    """A client has cut the link: what the master said and is not done yet is asked for again."""

    def __str__(self) -> str:
        return "a client has cut it"


class _MasterSession(CommandSession):
    """Who executes what the master says: nobody hears what is answered."""

    __slots__ = ("heard", "is_killed", "link")

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.heard = 0
        """How much of what is said was looked at."""
        self.link: MasterLink | None = None
        self.is_killed = False
        self.user = _NOBODY
        self.obeys_master = True
        self.authenticated = self.logged_in = self.deny_blocking = True

    def begin(self, link: MasterLink, *, is_new: bool) -> None:
        """Be the client at the other end of this link: as in Redis another one than before if a file came first."""
        self.link = link
        self.closing = False
        self.last_active = self.engine.clock()
        if is_new:
            self.id = self.engine.next_session_id()
            self.connected_at = self.last_active
        self.engine.master_session = self
        self.engine.replication.see(CONNECTED)

    @property
    def address(self) -> str:
        return self.link.peer if self.link is not None else "master"

    @property
    def local_address(self) -> str:
        return self.link.own if self.link is not None else ""

    def footprint(self) -> Footprint:
        return Footprint(descriptor=self.link.descriptor if self.link is not None else -1)

    def check_alive(self) -> None:
        """Check that no client has cut the link. Raises _Killed."""
        if self.is_killed:
            raise _Killed

    def hear(self, command: bytes) -> None:
        """Log what was answered to this command if it is an error: then the two differ from now on."""
        for part in self.said[self.heard :]:
            if part.startswith(b"-"):
                self.engine.stats.unexpected_error_replies += 1
                log.error(
                    "== CRITICAL == This replica is sending an error to its master: %r after processing the command %r",
                    part[1:].strip().decode(errors="replace"),
                    command.decode(errors="replace").lower(),
                )
        self.heard = len(self.said)

    def flush(self) -> None:
        self.hear(b"<unknown>")
        self.said.clear()
        self.heard = 0

    def close_now(self) -> None:
        """Cut the link: nothing more that came over it is executed."""
        self.is_killed = True
        self.engine.master_session = None
        self.engine.replication.see(CONNECT, self.engine.clock())
        if self.link is not None:
            self.link.cut()

    def abort(self) -> None:
        """Nothing was promised to the master."""

    def resume(self) -> None:
        """What a pause held back is not done, and the link's thread has it executed."""


_BREAKS: Final = (
    OSError,
    EOFError,
    MasterRefused,
    Malformed,
    Broken,
    Truncated,
    FunctionError,
    StoreError,
    TlsError,
    _Elsewhere,
    _Killed,
)
"""What ends a connection, and not the link."""


class MasterFollower:
    """Follows the master of a replica, if this server has the link."""

    def __init__(self, engine: Engine, store: Store, port: Callable[[], int]) -> None:
        """`port`: where this server listens."""
        self._engine = engine
        self._store = store
        self._port = port
        self._lock: int | None = None
        self._current: _Link | None = None
        engine.replication.turn_by(self._turned)
        if engine.replication.master is None:
            self._forget()

    def cron(self) -> None:
        """Take the link if the store is a replica and nobody has it."""
        replication = self._engine.replication
        current = self._current
        if current is not None and current.has_ended:
            current = self._current = None
        if replication.master is None:
            self._let_go()
        elif current is None and (self._lock is not None or self._take()):
            replication.is_followed_here = True
            self._current = _Link(self._engine, self._store, replication.master, self._port())

    def _forget(self) -> None:
        """It was a replica, and was started as none: what its clients write is not in the master's history."""
        data = self._store.data
        try:
            if data.read(replica_position.get) is not None:
                data.write(replica_position.forget, freeing=True)
        except StoreError as failure:
            log.warning("Can't remove the store's position in a master's history: %s", failure)

    def _turned(self) -> None:
        """There is another master, or none. What is known of the old one's history goes with it."""
        if self._current is not None:
            self._current.end()
        self.cron()

    def stop(self) -> None:
        """The server ends; it goes on from there when it comes back."""
        if self._current is not None:
            self._current.end()
            self._current = None
        self._let_go()

    def _take(self) -> bool:
        lock = os.open(Path(self._store.folder) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _let_go(self) -> None:
        if self._lock is not None and self._current is None:
            os.close(self._lock)
            self._lock = None
            self._engine.replication.is_followed_here = False


class _Link:
    """One thread that follows one master, from connection to connection, until `end`."""

    def __init__(self, engine: Engine, store: Store, master: tuple[bytes, int], port: int) -> None:
        self._engine = engine
        self._store = store
        self._replication = engine.replication
        self._settings = engine.settings
        self._master = engine.settings.text("replicaof")
        self._address = MasterAddress(master[0].decode("utf-8", "surrogateescape"), master[1])
        self._port = port
        self._session = _MasterSession(engine)
        self._is_over = False
        self._turns = LoopTurns(engine, self._check_wanted, (_Ended, _Later, _Killed))
        self._wake = threading.Event()
        self._link: MasterLink | None = None
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="rlite-replica", daemon=True)
        self._thread.start()

    # -- by the loop

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        """Nobody wants it any more. It executes nothing from now on."""
        self._is_over = True
        self._engine.master_session = None
        self._wake.set()
        link = self._link
        if link is not None:
            link.cut()

    # -- in the thread

    def _run(self) -> None:
        while not self._is_over:
            try:
                self._follow()
            except _Ended:
                break
            except _BREAKS as failure:
                text = str(_Killed() if self._session.is_killed else failure) or type(failure).__name__
                if not self._is_over and text != self._said:
                    self._said = text
                    log.warning("MASTER <-> REPLICA: the link to %s is broken: %s", self._address, text)
            except Exception:
                log.exception("Unexpected failure of the link to the master")
            finally:
                self._engine.master_session = None
            self._see(CONNECT)
            if not self._session.is_killed:
                self._wake.wait(_RETRY_S)

    def _see(self, link: bytes) -> None:
        self._replication.see(link, self._engine.clock())

    def _follow(self) -> None:
        """Connect, and follow the master until the connection ends."""
        if self._session.is_killed:
            self._session.is_killed = False
            self._turns.do(lambda: None)  # not before the transaction that has killed it is over
        self._see(CONNECTING)
        address = self._address._replace(
            username=self._settings["masteruser"],
            password=self._settings["masterauth"],
            source=self._settings.text("bind-source-addr").decode(),
        )
        if self._settings["tls-replication"]:
            address = address._replace(context=client_context(self._settings))
        with closing(MasterLink(address, float(self._settings["repl-timeout"]))) as link:
            self._link = link
            if self._is_over:
                return
            self._see(HANDSHAKE)
            link.introduce(address, self._port)
            known = self._store.data.read(replica_position.get)
            whole = known if known is not None and known.is_whole else None
            self._session.db = whole.database if whole is not None else 0
            position, has_file = link.follow(MasterPosition(whole.history, whole.offset) if whole is not None else None)
            if has_file:
                self._see(SYNC)
                self._session.db = 0
                self._load(link, position)
            elif whole is not None and position.history != whole.history:
                self._in_turn(lambda: self._note(position))
            log.info("MASTER <-> REPLICA: %s is followed from offset %d.", self._address, position.offset)
            self._said = ""
            self._apply(link, position, is_new=has_file)

    def _load(self, link: MasterLink, position: MasterPosition) -> None:
        """Replace all keys by the master's, when its file has come and is proved whole."""
        announced = link.begin_file()
        with closing(ReceivedFile(Path(self._store.folder), link.incoming.read, announced)) as received:
            loading = Loading(self._engine, self._in_turn, self._settings["databases"])
            link.end_file(loading.prove(received.read))
            self._replace(loading, received)
        self._session.db = loading.stream_database
        self._in_turn(lambda: self._note(position))
        self._tell()
        log.info("MASTER <-> REPLICA: %d keys have come from %s.", loading.keys, self._address)

    def _replace(self, loading: Loading, received: ReceivedFile) -> None:
        self._in_turn(self._empty)
        try:
            self._tell()
            loading.load(received.again().read)
        except _Ended:
            log.warning(
                "MASTER <-> REPLICA: the store has another role now, in the middle of replacing its keys: of the old "
                "ones none are left, and of those of %s there are %d.",
                self._address,
                loading.keys,
            )
            raise

    def _apply(self, link: MasterLink, position: MasterPosition, *, is_new: bool) -> None:
        """Apply what the master says; the end of the link raises EOFError."""
        offset = position.offset
        acknowledging = threading.Thread(target=self._acknowledge, args=(link,), daemon=True)
        self._hear(offset)
        self._turns.do(lambda: self._begin(link, is_new=is_new))
        acknowledging.start()
        try:
            for batch in _batches(link):
                names = {words[0].upper() for unit, _ in batch for words in unit}
                size = sum([size for _, size in batch])
                self._replication.note_read(offset + size)
                if names - _NOT_EXECUTED:
                    while not self._has_executed(batch, position._replace(offset=offset)):
                        self._wake.wait(_HELD_S)
                offset += size
                self._hear(offset)
                if b"REPLCONF" in names:  # GETACK
                    link.send(b"REPLCONF", b"ACK", b"%d" % offset)
            raise EOFError("the master has closed the connection")
        finally:
            link.close()
            acknowledging.join()

    def _hear(self, offset: int) -> None:
        self._replication.hear(monotonic(), offset)
        self._session.last_active = self._engine.clock()

    def _acknowledge(self, link: MasterLink) -> None:
        """Each second, whatever comes: silence is how a master knows that a replica is gone."""
        while not self._is_over:
            try:
                link.send(b"REPLCONF", b"ACK", b"%d" % self._replication.offset)
            except OSError:
                return  # the reader meets it, too
            self._wake.wait(_ACK_S)

    # -- in the loop, for the thread

    def _in_turn(self, work: Callable[[], None]) -> None:
        """Have the loop do this as a turn, and wait for its commit, as long as others write. Raises StoreError,
        _Ended."""
        while True:
            try:
                return self._do_in_turn(work)
            except (StoreHeld, _Later):
                self._wake.wait(_HELD_S)

    def _do_in_turn(self, work: Callable[[], None]) -> None:
        keyspace = self._engine.keyspace

        def checked() -> None:
            keyspace.settle()  # what clients did just before, and in their name
            self._check_master()
            keyspace.times.obey_master(True)
            try:
                work()
                if keyspace.turn.failure is None:
                    keyspace.settle()
            finally:
                keyspace.times.obey_master(False)

        self._turns.do(checked)

    def _begin(self, link: MasterLink, *, is_new: bool) -> None:
        self._check_wanted()
        self._session.begin(link, is_new=is_new)

    def _check_wanted(self) -> None:
        if self._is_over:
            raise _Ended

    def _check_master(self) -> None:
        """Check that the store is still this master's replica, in the transaction that writes what it says. Raises
        StoreError, _Ended, _Killed."""
        if self._is_over:
            raise _Ended
        self._session.check_alive()
        said = shared_settings.setting(self._engine.keyspace.writing(), "replicaof")
        if said is not None and said != self._master:
            raise _Ended  # another process has said so, and this one will hear of it

    def _has_executed(self, batch: list[Unit], position: MasterPosition) -> bool:
        """As `_execute`, in a turn of its own."""
        ends: list[bool] = []
        self._in_turn(lambda: ends.append(self._execute(batch, position)))
        return ends[-1]

    def _execute(self, batch: list[Unit], position: MasterPosition) -> bool:
        """Execute what the master said after this position and is not done yet: the store's position tells, which
        is committed with it. False: one of them is held up, and is to be executed later, with those after it. Raises
        StoreError, StoreHeld, _Later."""
        session, keyspace = self._session, self._engine.keyspace
        if self._engine.pause.scope is not None:
            raise _Later
        done = replica_position.get(keyspace.writing())
        if done is None or not done.is_whole or done.history != position.history:
            raise _Elsewhere("another process has forgotten how far it is")
        session.db = database = done.database
        offset = position.offset

        def note() -> None:
            self._put(ReplicaPosition(True, offset, database, position.history))

        keyspace.call_when_giving_way(note)
        try:
            for requests, size in batch:
                if offset + size > done.offset:
                    keyspace.writing()  # it may have given way, and another process have begun to write
                    for words in requests:
                        session.deny_blocking = True  # which EXEC takes back
                        if words[0].upper() not in _NOT_EXECUTED and not execute(session, words):
                            session.discard()
                            if offset > done.offset:
                                note()
                            return False
                        session.hear(words[0])
                    database = session.db
                offset += size
            note()
            return True
        except BaseException:
            session.discard()
            raise
        finally:
            keyspace.call_when_giving_way(None)

    def _empty(self) -> None:
        """Nothing is there but that all of it is still to come."""
        keyspace = self._engine.keyspace
        for database in keyspace.databases.numbers():
            keyspace.databases.flush(database)
        self._engine.libraries.flush()
        self._put(ReplicaPosition(False, 0, 0, b""))

    def _note(self, position: MasterPosition) -> None:
        self._put(ReplicaPosition(True, position.offset, self._session.db, position.history))

    def _put(self, position: ReplicaPosition) -> None:
        keyspace = self._engine.keyspace
        replica_position.put(keyspace.writing(), position)
        keyspace.stored.wrote_beside()

    def _tell(self) -> None:
        """Other processes are to see whether keys are half there."""

        def bump(txn: Txn) -> int:
            return shared_settings.bump(txn)

        def work() -> None:
            self._store.routes.announce_commons(self._store.data.write(bump))

        self._in_turn(work)


def _batches(link: MasterLink) -> Iterator[list[Unit]]:
    """Yield what the master has said so far, in batches the size of a good commit. Raises Broken, Truncated."""
    batch: list[Unit] = []
    size = 0
    for unit in read_units(link.incoming):
        batch.append(unit)
        size += unit[1]
        if len(batch) >= _AT_ONCE or size >= _AT_ONCE_BYTES or not link.has_more:
            yield batch
            batch, size = [], 0
