"""A sharded store, as those who change it see it: its members, asked one by one.

Nothing here need come to its end: each member takes what it is told in one commit, all directories can be merged, and
to say the same once more does no harm. So what was killed in the midst of it is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import redis
from redis.exceptions import ConnectionError, TimeoutError

from rlite_pubsub.engine.shards.directory import Member, ShardDirectory, founded, read


class WholeError(Exception):
    """It can't be done; the text says why, and nothing was changed."""


class MemberAddress(NamedTuple):
    """The address of a member's server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Seen(NamedTuple):
    """A member's report on itself."""

    member: Member
    keys: int | None
    """None: it does not answer."""
    moving: int = 0
    """Slots that it is to give away."""
    failure: str = ""
    """Why that does not go on."""


class ShardedWhole:
    """Members that are asked over connections with the same password."""

    def __init__(self, connect: Callable[[MemberAddress], redis.Redis]) -> None:
        self._connect = connect
        self._clients: dict[MemberAddress, redis.Redis] = {}

    def ask(self, address: MemberAddress, *words: Any) -> Any:
        """Return a member's answer. Raises RedisError."""
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = self._connect(address)
        return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def __enter__(self) -> ShardedWhole:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # -- founding

    def found(self, addresses: Sequence[MemberAddress]) -> ShardDirectory:
        """Make these servers' stores one whole; each slot in which one of them has keys stays where it is. Where that
        was begun before, it is finished. Raises WholeError, RedisError."""
        if len(set(addresses)) < len(addresses) or not addresses:
            raise WholeError("each member is to be named once")
        known = [self._directory(address) for address in addresses]
        members: list[Member] = []
        owners: dict[int, Member] = {}
        for address in addresses:
            member, slots = self._introduced(address)
            members.append(member)
            for slot in slots:
                if slot in owners:
                    where = f"{owners[slot].address.decode()} and {address}"
                    raise WholeError(f"{where} both have keys of slot {slot}: rename them, or move them to one")
                owners[slot] = member
        if len({member.id for member in members}) < len(members):
            raise WholeError("two of these addresses are the same store's, or one store is a copy of another")
        begun = [directory for directory in known if directory is not None]
        directory = begun[0] if begun else founded(members, owners)
        for each in begun:
            if {one.id for one in each.members} != {one.id for one in members}:
                raise WholeError("one of them is a member of another sharded store already: `shard add` adds to that")
            directory = directory.merged(each)
        if directory.members != tuple(sorted(members)):
            directory = directory.with_members(members)  # one of them has moved to another address
        self._tell_all(directory)
        return directory

    def add(self, at: MemberAddress, addresses: Iterable[MemberAddress]) -> ShardDirectory:
        """Add members, which have no slots until they are given some; or say where members are now. Raises WholeError,
        RedisError."""
        directory = self.directory(at)
        members = {member.id: member for member in directory.members}
        for address in addresses:
            member, slots = self._introduced(address)
            if member.id not in members and slots:
                raise WholeError(f"{address} has keys, and other members their slots: only an empty store is added")
            members[member.id] = member
        directory = directory.with_members(members.values())
        self._tell_all(directory)
        return directory

    def _introduced(self, address: MemberAddress) -> tuple[Member, list[int]]:
        id, slots = self.ask(address, "SHARD.ID")
        return Member(id, address.host.encode(), address.port), slots

    # -- looking

    def directory(self, at: MemberAddress) -> ShardDirectory:
        """Return what all members that answer know together; one of them is asked first. Raises WholeError,
        RedisError."""
        directory = self._directory(at)
        if directory is None:
            raise WholeError(f"{at} is not a member of a sharded store: `shard create` makes one")
        for member in directory.members:
            try:
                known = self._directory(address_of(member))
            except (ConnectionError, TimeoutError):
                continue
            if known is not None:
                directory = directory.merged(known)
        return directory

    def spread(self, directory: ShardDirectory) -> list[Member]:
        """Tell all members; those that do not answer."""
        away = []
        for member in directory.members:
            try:
                self.ask(address_of(member), "SHARD.LEARN", directory.text)
            except (ConnectionError, TimeoutError):
                away.append(member)
        return away

    def _tell_all(self, directory: ShardDirectory) -> None:
        away = self.spread(directory)
        if away:
            names = ", ".join(member.address.decode() for member in away)
            raise WholeError(f"no answer from {names}: run this again when all members do")

    def _directory(self, address: MemberAddress) -> ShardDirectory | None:
        text = self.ask(address, "SHARD.DIRECTORY")
        return None if text is None else read(text)

    def look(self, directory: ShardDirectory) -> list[Seen]:
        """Return each member's report on itself."""
        found = []
        for member in directory.members:
            try:
                address = address_of(member)
                said = self.ask(address, "SHARD.MOVES")
                rows = said.items() if isinstance(said, dict) else zip(said[::2], said[1::2], strict=True)
                moves = dict(rows)
                keys = int(self.ask(address, "DBSIZE"))
                found.append(Seen(member, keys, int(moves[b"slots"]), moves[b"failure"].decode()))
            except (ConnectionError, TimeoutError):
                found.append(Seen(member, None))
        return found

    # -- moving

    def move(self, directory: ShardDirectory, slots: Iterable[int], to: Member) -> None:
        """Have their owners move these slots. Raises WholeError, RedisError."""
        by_owner: dict[Member, list[int]] = {}
        for slot in slots:
            owner = directory.owners[slot]
            if owner is None:
                raise WholeError(f"no member has slot {slot}")
            by_owner.setdefault(owner, []).append(slot)
        for owner, theirs in by_owner.items():
            if owner != to:
                self.ask(address_of(owner), "SHARD.MOVE", to.id, *theirs)

    def rebalance(self, directory: ShardDirectory) -> int:
        """Have members that have more slots than others give some away; how many. Raises WholeError, RedisError."""
        count = 0
        for (_, to), slots in _evenly(directory).items():
            self.move(directory, slots, to)
            count += len(slots)
        return count


def _evenly(directory: ShardDirectory) -> dict[tuple[Member, Member], list[int]]:
    """Return, by (from, to), the slots whose move gives all members the same number."""
    theirs: dict[Member, list[int]] = {member: [] for member in directory.members}
    for slot, owner in enumerate(directory.owners):
        if owner is not None:
            theirs[owner].append(slot)
    assigned = sum(map(len, theirs.values()))
    least, more = divmod(assigned, len(theirs))
    by_size = sorted(theirs, key=lambda member: (-len(theirs[member]), member))
    wanted = {member: least + (place < more) for place, member in enumerate(by_size)}
    spare = [(member, slot) for member in by_size for slot in theirs[member][wanted[member] :]]
    moves: dict[tuple[Member, Member], list[int]] = {}
    for member in by_size:
        for _ in range(wanted[member] - len(theirs[member])):
            owner, slot = spare.pop()
            moves.setdefault((owner, member), []).append(slot)
    return moves


def address_of(member: Member) -> MemberAddress:
    """Return a member's address."""
    return MemberAddress(member.host.decode(), member.port)
