"""The state of one client: who it is, what it has chosen, its transaction, and why it waits.

It knows nothing of the engine that executes its commands (session.py adds that), so whatever deals with clients can
know this, and be known by the engine.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeAlias

from mypy_extensions import mypyc_attr

from rlite_pubsub.engine.stats.footprint import Footprint, Traffic
from rlite_pubsub.engine.table import Command
from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.pubsub.session import Session

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.user import User
    from rlite_pubsub.engine.tracking.tracking import Tracking
    from rlite_pubsub.engine.waits.giving_back import Taken
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.pubsub.outbox import Outbox

log: Final = logging.getLogger("rlite_pubsub")

Watched: TypeAlias = dict[tuple[int, bytes], tuple[int, int]]
"""(database, key) -> the note of tracking/watching.py."""

Seated: TypeAlias = tuple[int, bytes, bytes, bytes]
"""(database, key, group, consumer)"""


class Transaction:
    """The commands queued since MULTI."""

    __slots__ = ("aborted", "queue")

    def __init__(self) -> None:
        self.queue: list[tuple[Command, list[bytes]]] = []
        self.aborted = False
        """A command could not be queued: EXEC will refuse."""

    def abort(self) -> None:
        """Note that a command could not be queued."""
        self.aborted = True


@mypyc_attr(allow_interpreted_subclasses=True)
class Client(Session):
    """A session with the choices that commands make."""

    __slots__ = (
        "blocked",
        "cas_broken",
        "connected_at",
        "consumes",
        "db",
        "deny_blocking",
        "gives_back",
        "in_script",
        "is_asking",
        "is_replica",
        "last_active",
        "last_command",
        "lib_name",
        "lib_version",
        "limits",
        "logged_in",
        "name",
        "no_evict",
        "no_touch",
        "obeys_master",
        "plain",
        "replies_off",
        "skip_replies",
        "tracking",
        "transaction",
        "user",
        "watched",
    )

    def __init__(self, id: int, hub: Hub, now: float, default: User, outbox: Outbox | None = None) -> None:
        """`default` is the user of a session that has not logged in."""
        super().__init__(id, hub, outbox)
        self.connected_at = now
        self.last_active = now
        self.last_command: Command | None = None
        self.name = b""
        self.lib_name = b""
        self.lib_version = b""
        self.user = b"default"
        self.logged_in = default.is_open
        self.authenticated = self.logged_in  # may execute commands, because it has logged in or nobody needs to
        self.limits = None if default.is_unrestricted else default  # its user, if that may not do everything
        self.db = 0
        self.transaction: Transaction | None = None
        self.watched: Watched | None = None
        self.cas_broken = False  # a watched key was touched: EXEC will answer null
        self.no_evict = False
        self.no_touch = False
        self.replies_off = False  # CLIENT REPLY OFF
        self.skip_replies = 0  # CLIENT REPLY SKIP: bit 0 silences this command, bit 1 the next
        self.deny_blocking = False  # inside EXEC, or a script
        self.gives_back = False  # what was popped for it, and did not reach its program, goes back
        self.in_script = False  # executes what scripts call
        self.is_asking = False  # ASKING: the next command was sent here by another member
        self.obeys_master = False  # says what the master of this replica has said
        self.is_replica = False  # its peer is one of this store
        self.consumes: dict[Seated, object] | None = None  # what it is pushed of groups (waits/consuming.py)
        self.blocked: Blocked | None = None  # why its next commands must wait
        self.tracking: Tracking | None = None  # CLIENT TRACKING is on
        self.plain = False
        """Nothing about this session makes its commands different: see `look_at_itself`."""

    @property
    def local_address(self) -> str:
        """The `ip:port` of our end, or the socket's path."""
        return ""

    def give_socket(self) -> int | None:
        """Give away a descriptor of the connection and leave; None if it has none that others can use."""
        return None

    def lend_socket(self) -> int | None:
        """Return a descriptor of the connection for another writer to use in its place; None if it has none that others
        can use."""
        return None

    def become_replica(self) -> None:
        """Treat the peer as a replica: it receives the changes of others and gets no replies."""
        self.is_replica = True
        self.replies_off = True
        self.look_at_itself()

    @property
    def is_local(self) -> bool:
        """True if the peer is on this machine: a unix socket, the loopback, or no socket."""
        return True

    @property
    def transport(self) -> bytes:
        """How the peer is connected: tcp, unix, http or embedded."""
        return b""

    @property
    def type(self) -> bytes:
        """The class of this session in CLIENT LIST TYPE and in the outbox limits."""
        if self.is_replica:
            return b"replica"
        if self.obeys_master:
            return b"master"
        return b"pubsub" if self.holds_names else b"normal"

    @property
    def called(self) -> bytes:
        return self.name

    def log_in(self, user: User) -> None:
        """Take on this user, whom the client has proved to be."""
        self.user = user.name
        self.logged_in = self.authenticated = True
        self.restrict(None if user.is_unrestricted else user)

    def obey(self, user: User | None, *, is_open: bool) -> None:
        """Apply changed rules: `user` is this session's user, if it still exists; `is_open`: nobody needs to log in."""
        self.authenticated = self.logged_in or is_open
        if user is not None:
            self.limits = None if user.is_unrestricted else user
        self.look_at_itself()

    def restrict(self, limits: User | None) -> None:
        """Apply this user's rules from the next command on; None lifts them."""
        self.limits = limits
        self.look_at_itself()

    def look_at_itself(self) -> None:
        """Decide whether the session's commands may skip the checks. Only its own requests and its user's rules can
        change that."""
        self.plain = (
            self.authenticated
            and self.limits is None
            and self.transaction is None
            and not self.replies_off
            and not self.skip_replies
            and self.tracking is None
            and not self.holds_names
        )

    def introduce(
        self, *, name: bytes | None = None, lib_name: bytes | None = None, lib_version: bytes | None = None
    ) -> None:
        """Note what the peer says of itself; None leaves the earlier value."""
        self.name = self.name if name is None else name
        self.lib_name = self.lib_name if lib_name is None else lib_name
        self.lib_version = self.lib_version if lib_version is None else lib_version

    def be_asked(self) -> None:
        """Note ASKING: another member of a sharded store has sent the next command here."""
        self.is_asking = True

    def was_asked(self) -> bool:
        """Return whether ASKING came before this command, and clear it."""
        is_asking, self.is_asking = self.is_asking, False
        return is_asking

    def select(self, database: int) -> None:
        """Select the database for the commands that follow."""
        self.db = database

    # -- CLIENT REPLY

    def want_replies(self) -> None:
        """Obey CLIENT REPLY ON."""
        self.replies_off = False
        self.skip_replies &= ~1

    def want_no_replies(self) -> None:
        """Obey CLIENT REPLY OFF."""
        self.replies_off = True

    def skip_reply(self) -> None:
        """Obey CLIENT REPLY SKIP: the next command gets no reply."""
        if not self.replies_off:
            self.skip_replies |= 2

    # -- its transaction

    def begin_transaction(self) -> None:
        """Queue the commands that follow."""
        self.transaction = Transaction()

    def begin_exec(self, transaction: Transaction) -> None:
        """Begin to execute the queue: its commands know that they are in a transaction, and do not block."""
        self.transaction = transaction
        self.deny_blocking = True

    def begin_rehearsal(self) -> int:
        """Begin to try commands, none of which may block. Returns what `end_rehearsal` takes."""
        self.deny_blocking = True
        return self.db

    def end_rehearsal(self, database: int) -> None:
        """End the trial, and select this database again."""
        self.deny_blocking = False
        self.db = database

    def begin_watching(self) -> Watched:
        """Return the keys it watches, for more to be added."""
        if self.watched is None:
            self.watched = {}
        return self.watched

    def spoil(self) -> None:
        """Note that a watched key was touched: EXEC will answer null."""
        self.cas_broken = True

    def note_taken(self, taken: Taken) -> None:
        """Note what a command has popped for this session, if it `gives_back`."""
        raise NotImplementedError

    # -- its waiting

    def wait_for(self, end: Blocked) -> None:
        """Hold back the next commands until this wait ends."""
        self.blocked = end

    def end_wait(self) -> None:
        """End the wait; the caller resumes the session."""
        self.blocked = None

    def go_on(self) -> None:
        """End the wait, and resume the session now. If that raises, the fault is ours: the session is closed, so that
        its peer does not wait for an answer that will never come, and the caller goes on with the others."""
        self.blocked = None
        try:
            self.resume()
        except Exception:
            log.exception("Unexpected failure while %s went on after a wait", self.address)
            self.abort()
            self.rouse()

    def traffic(self) -> Traffic | None:
        """Return how many bytes came from and went to the peer, if they are counted anyway; else None."""
        return None

    def unsent_bytes(self) -> int:
        """Return how much the kernel has of what was sent, and the peer has not acknowledged; 0 if it does not tell."""
        return 0

    def footprint(self) -> Footprint:
        """Return how much memory its owner knows the connection to use."""
        return Footprint()

    def close_after_reply(self) -> None:
        """Execute nothing more, and close the connection once all replies are written."""
        self.closing = True

    def abort(self) -> None:
        self.close_now()

    def resume(self) -> None:
        """Execute the commands that waited while the session was blocked."""
        raise NotImplementedError
