"""Redis Cluster's redirects: whether the keys of a request belong to this member, and where they are if not.

    -MOVED slot host:port    another member has the slot
    -ASK slot host:port      it was given away just now, and may not have arrived: ask there, behind ASKING
    -TRYAGAIN                it is on its way in here, and nearly there
    -CROSSSLOT               keys of several slots in one request
    -CLUSTERDOWN             nobody has the slot

The order of the checks and the words are getNodeByQuery's and clusterRedirectClient's of Redis 7.0.15. A store without
a directory is not sharded: nothing here is asked then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.key_places import keys_of
from rlite_pubsub.engine.shards.directory import Member, ShardDirectory, read
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.commons import shard_rows, shared_settings

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.storage.environment import Environment, Txn

CROSS_SLOT: Final = b"CROSSSLOT Keys in request don't hash to the same slot"
DOWN: Final = b"CLUSTERDOWN Hash slot not served"
TRY_AGAIN: Final = b"TRYAGAIN Multiple keys request during rehashing of slot"
NOT_LOCAL: Final = b"ERR Script attempted to access a non local key in a cluster node"
_OF_CHANNELS: Final = frozenset((b"spublish", b"ssubscribe", b"sunsubscribe"))


class Redirect(CommandError):
    """This member does not execute the request: EXEC answers with this, too, and not with EXECABORT."""


class Sharding:
    """A process's knowledge of the whole that its store is a member of."""

    def __init__(self, environment: Environment, changed: Callable[[], None]) -> None:
        """`changed` is called when the directory changes. Raises StoreError."""
        self.directory: ShardDirectory | None = None
        self.own = b""
        self.leaving: dict[int, Member] = {}
        """Slots that were given away, and whose keys are not known to have arrived."""
        self.arriving: set[int] = set()
        """Slots that another member is sending."""
        self.moving: frozenset[int] = frozenset()
        """Slots whose keys are being copied to another member."""
        self.touched: set[bytes] = set()
        """Keys of these that were changed meanwhile."""
        self.send: Callable[[Member, list[int]], None] | None = None
        """Has slots sent to another member; None: nobody here does that."""
        self.report: Callable[[], tuple[int, str]] = _nothing_moves
        """How many slots are to be sent, and why the last try came to nothing."""
        self._environment = environment
        self._changed = changed
        self._text: bytes | None = None
        self._leaving_text = b""
        self._see()

    # -- what the store says

    def look(self) -> None:
        """Take over the store's state. Raises StoreError."""
        if self._see():
            self._changed()

    def _see(self) -> bool:
        def rows(txn: Txn) -> tuple[bytes | None, bytes | None, bytes]:
            return shard_rows.directory(txn), shard_rows.member(txn), shard_rows.leaving(txn)

        text, own, leaving = self._environment.read(rows)
        if (text, leaving) == (self._text, self._leaving_text):
            return False
        self._text, self._leaving_text = text, leaving
        self.own = own or b""
        self.directory = None if text is None else read(text)
        self.leaving = dict(self.departures())
        return True

    def departures(self) -> Iterable[tuple[int, Member]]:
        """Yield the slots on their way out, and to whom."""
        for slots, id in json.loads(self._leaving_text or b"[]"):
            member = None if self.directory is None else self.directory.member(id.encode())
            if member is not None:
                yield from ((slot, member) for slot in slots)

    def settle_own(self) -> bytes:
        """Return the id by which the others know this store. Raises StoreError."""
        found = self._environment.read(shard_rows.member)
        if found is None:
            found = self._environment.write(shard_rows.settle_member)
        return found

    def learn(self, news: ShardDirectory) -> bool:
        """Merge this directory; return whether there was anything new. Raises StoreError."""
        own = self.settle_own()

        def learn(txn: Txn) -> bool:
            known = shard_rows.directory(txn)
            merged = news if known is None else read(known).merged(news)
            if merged.text == known:
                return False
            shard_rows.put_directory(txn, merged.text)
            shared_settings.bump(txn)
            return True

        is_new = self._environment.write(learn)
        self.own = own
        self.look()
        return is_new

    # -- slots on their way

    def send_by(self, send: Callable[[Member, list[int]], None], report: Callable[[], tuple[int, str]]) -> None:
        """Call `send` with slots to be moved to another member; `report` says how many are left, and what fails."""
        self.send = send
        self.report = report

    def expect(self, slots: Iterable[int]) -> None:
        """Set the slots that other members are sending."""
        self.arriving = set(slots)

    def begin_copying(self, slots: Iterable[int]) -> None:
        """Begin to note changes of keys in these slots, which are being copied."""
        self.moving, self.touched = frozenset(slots), set()
        self._changed()

    def end_copying(self) -> None:
        """Stop noting changes: nothing is being copied any more."""
        self.moving, self.touched = frozenset(), set()
        self._changed()

    def give_away(self, slots: Sequence[int], to: Member) -> None:
        """Give slots away: from this commit on nobody reads or changes their keys here, whatever happens. Raises
        StoreError."""
        text = json.dumps([[list(slots), to.id.decode()]], separators=(",", ":")).encode()

        def give(txn: Txn) -> None:
            shard_rows.put_leaving(txn, text)
            shared_settings.bump(txn)

        self._environment.write(give)
        self.look()

    def take_back(self) -> None:
        """Take back slots that were given away and that surely nobody has taken. Raises StoreError."""

        if not self.leaving:
            return

        def take_back(txn: Txn) -> None:
            shard_rows.put_leaving(txn, b"")
            shared_settings.bump(txn)

        self._environment.write(take_back)
        self.look()

    def after_giving(self, slots: Iterable[int], to: Member) -> ShardDirectory:
        """Return the directory as it will be once the other member has taken these."""
        directory = self.directory
        assert directory is not None
        return directory.given([slot for slot in slots if _is_of(directory, slot, self.own)], to)

    def forget_given(self, after: ShardDirectory) -> None:
        """Forget slots on their way out: they have arrived, and nothing of them is left here. Raises StoreError."""

        def forget(txn: Txn) -> None:
            known = shard_rows.directory(txn)
            shard_rows.put_directory(txn, (after if known is None else read(known).merged(after)).text)
            shard_rows.put_leaving(txn, b"")
            shared_settings.bump(txn)

        self._environment.write(forget)
        self.look()

    # -- requests

    def check(self, session: Client, command: Command, args: list[bytes]) -> None:
        """Check that this member may execute this request, or queue it. Raises CommandError."""
        directory = self.directory
        if directory is None or session.obeys_master:
            return
        is_asking = session.was_asked()
        if command.name == b"exec":
            transaction = session.transaction
            requests = [] if transaction is None else transaction.queue
        else:
            requests = [(command, args)]
        slot = -1
        for each, words in requests:
            for key in _keys(each, words):
                other = slot_of(key)
                if slot < 0:
                    slot = other
                elif slot != other:
                    raise Redirect(CROSS_SLOT)
        if slot < 0:
            return
        owner = directory.owners[slot]
        if slot in self.leaving:
            raise Redirect(b"ASK %d %b" % (slot, self.leaving[slot].address))
        if owner is None:
            raise Redirect(DOWN)
        if owner.id == self.own:
            return
        if is_asking and slot in self.arriving:
            raise Redirect(TRY_AGAIN)
        raise Redirect(b"MOVED %d %b" % (slot, owner.address))

    def has_all(self, command: Command, args: list[bytes]) -> bool:
        """Return whether a script that runs here may execute this: all of its keys belong to this member."""
        directory = self.directory
        if directory is None:
            return True
        return all(self.has(slot_of(key)) for key in _keys(command, args))

    def has(self, slot: int) -> bool:
        """Return whether a slot belongs to this member, which may execute requests on its keys."""
        owner = None if self.directory is None else self.directory.owners[slot]
        return owner is not None and owner.id == self.own and slot not in self.leaving

    def note(self, key: bytes) -> None:
        """Note that a key was changed, while slots are copied."""
        if slot_of(key) in self.moving:
            self.touched.add(key)


def _nothing_moves() -> tuple[int, str]:
    """Report that nobody moves slots here."""
    return 0, ""


def _is_of(directory: ShardDirectory, slot: int, member: bytes) -> bool:
    held = directory.holdings[slot]
    return held is not None and held.owner == member


def _keys(command: Command, args: list[bytes]) -> list[bytes]:
    """Return what decides who executes a request: its keys, or its sharded channels."""
    if command.key_specs and command.name not in _OF_CHANNELS:
        return [key for key, _ in keys_of(command, args) or ()]
    if command.name in _OF_CHANNELS:
        return args[1:2] if command.name == b"spublish" else args[1:]
    return []
