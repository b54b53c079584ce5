"""The options of XREAD and XREADGROUP, and of XADD and XTRIM, in redis-server 7.0.15's order of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.references import KEEPREF, POLICIES
from rlite_pubsub.engine.arguments.stream_ids import strict_id, wanted_id
from rlite_pubsub.engine.waits.timeouts import timeout_ms
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, c_string
from rlite_pubsub.protocol.replies import Map, Reply
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

_UNBALANCED: Final = b"ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
_NO_WAIT_IN_SCRIPTS: Final = b"ERR %b command is not allowed with BLOCK option from scripts"
_ONLY_FOR_GROUPS: Final = b"ERR The %b option is only supported by XREADGROUP. You called XREAD instead."
_NO_GROUP: Final = b"ERR Missing GROUP option for XREADGROUP"
_BAD_IDLE: Final = b"ERR min-idle-time is not an integer or out of range"
_NEGATIVE_IDLE: Final = b"ERR min-idle-time must be a positive integer"
_TWO_STRATEGIES: Final = b"ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
_NEGATIVE_MAXLEN: Final = b"ERR The MAXLEN argument must be >= 0."
_NEGATIVE_LIMIT: Final = b"ERR The LIMIT argument must be >= 0."
_LIMIT_WITHOUT_STRATEGY: Final = b"ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
_PRODUCED_TWICE: Final = b"ERR IDMP/IDMPAUTO specified multiple times"
_NO_PRODUCER: Final = b"ERR %b requires a non-empty producer ID"
_NO_PUBLICATION: Final = b"ERR IDMP requires a non-empty idempotent ID"
_ONCE_WITH_ID: Final = b"ERR IDMP/IDMPAUTO can be used only with auto-generated IDs"
_NO_STRATEGY: Final = b"ERR syntax error, XTRIM must be called with a trimming strategy"
_LIMIT_OF_EXACT: Final = b"ERR syntax error, LIMIT cannot be used without the special ~ option"


class Reading(NamedTuple):
    """What XREAD or XREADGROUP reads. The ids are as they were sent: their meaning depends on their keys."""

    keys: list[bytes]
    ids: list[bytes]
    count: int = 0  # type: ignore[assignment]  # tuple.count is of no use here
    """0: all."""
    block_ms: int | None = None
    """None: do not wait. 0: without limit."""
    group: bytes | None = None
    consumer: bytes = b""
    no_ack: bool = False
    claim_idle_ms: int | None = None
    """XREADGROUP's CLAIM (Redis 8.4)."""


def reading(args: list[bytes], *, by_group: bool, in_script: bool = False) -> Reading:
    """Read the arguments of XREAD, or of XREADGROUP (`by_group`); a script cannot wait. Raises CommandError."""
    count, block_ms, group, consumer, no_ack, claim_idle_ms = 0, None, None, b"", False, None
    place, last = 1, len(args) - 1
    while place <= last:
        word = args[place].upper()
        has_more = place < last
        if word == b"STREAMS" and has_more:
            names = args[place + 1 :]
            half, odd = divmod(len(names), 2)
            if odd:
                raise CommandError(_UNBALANCED)
            if by_group and group is None:
                raise CommandError(_NO_GROUP)
            return Reading(names[:half], names[half:], count, block_ms, group, consumer, no_ack, claim_idle_ms)
        if word == b"COUNT" and has_more:
            place += 1
            count = max(integer(args[place]), 0)
        elif word == b"BLOCK" and has_more:
            if in_script:
                raise CommandError(_NO_WAIT_IN_SCRIPTS % c_string(args[0]))
            place += 1
            block_ms = timeout_ms(args[place])
        elif word == b"GROUP" and place + 2 <= last:
            if not by_group:
                raise CommandError(_ONLY_FOR_GROUPS % word)
            group, consumer = args[place + 1 : place + 3]
            place += 2
        elif word == b"NOACK":
            if not by_group:
                raise CommandError(_ONLY_FOR_GROUPS % word)
            no_ack = True
        elif word == b"CLAIM" and by_group and has_more:
            place += 1
            claim_idle_ms = integer(args[place], refusal=_BAD_IDLE)
            if claim_idle_ms < 0:
                raise CommandError(_NEGATIVE_IDLE)
        else:
            raise CommandError(SYNTAX)
        place += 1
    raise CommandError(SYNTAX)  # without STREAMS


def of_keys(session: CommandSession, found: list[tuple[bytes, Reply]]) -> Reply:
    """Return what was read of each key: a map in RESP3, and pairs in RESP2, which would flatten a map."""
    return Map(found) if session.protocol == 3 else found


class Trimming:
    """A way of trimming a topic: by length, or (`min_id`) by id."""

    __slots__ = ("is_approximate", "limit", "max_length", "min_id", "references")

    def __init__(
        self,
        max_length: int,
        min_id: Id | None,
        is_approximate: bool,
        limit: int | None = None,
        references: bytes = KEEPREF,
    ) -> None:
        self.max_length = max_length
        self.min_id = min_id
        self.is_approximate = is_approximate
        self.limit = limit  # of entries that may be removed; 0: there is none; None: not given
        self.references = references  # what happens to the groups' references to removed entries


class Addition:
    """The arguments of XADD."""

    __slots__ = ("fields_at", "may_create", "ms", "producer", "publication", "seq", "trimming")

    def __init__(
        self,
        ms: int | None,
        seq: int | None,
        fields_at: int,
        may_create: bool,
        trimming: Trimming | None,
        producer: bytes | None = None,
        publication: bytes | None = None,
    ) -> None:
        self.ms = ms  # None: the id is generated
        self.seq = seq  # None: its second half is generated
        self.fields_at = fields_at  # where the fields begin in the request
        self.may_create = may_create
        self.trimming = trimming
        self.producer = producer  # whose entry is added only once (Redis 8.6); None: it is added in any case
        self.publication = publication  # the producer's name for the entry; None: its content is its name


def addition(args: list[bytes]) -> Addition:
    """Read XADD's arguments up to its id. Raises CommandError."""
    if len(args) > 5 and args[5] == b"*" and args[3] == b"~" and args[2].upper() == b"MAXLEN":
        # most clients that trim write this: read it in one step
        max_length = integer(args[4])
        if max_length >= 0:
            return Addition(None, None, 6, True, Trimming(max_length, None, True))
    return _options(args, adds=True)


def trimming(args: list[bytes]) -> Trimming:
    """Read XTRIM's arguments. Raises CommandError."""
    found = _options(args, adds=False).trimming
    assert found is not None
    return found


def _options(args: list[bytes], *, adds: bool) -> Addition:
    may_create = True
    strategy: bytes | None = None
    references: bytes | None = None
    max_length, min_id, is_approximate = 0, None, False
    limit: int | None = None
    ms: int | None = None
    seq: int | None = None
    producer: bytes | None = None
    publication: bytes | None = None
    place, last = 2, len(args) - 1
    while place <= last:
        word = args[place]
        option = word.upper()
        more = last - place
        if adds and word == b"*":
            break
        if option in (b"MAXLEN", b"MINID") and more:
            if strategy is not None:
                raise CommandError(_TWO_STRATEGIES)
            operator = args[place + 1]
            is_approximate = more >= 2 and operator == b"~"
            place += 2 if more >= 2 and operator in (b"~", b"=") else 1
            if option == b"MAXLEN":
                max_length = integer(args[place])
                if max_length < 0:
                    raise CommandError(_NEGATIVE_MAXLEN)
            else:
                min_id = strict_id(args[place])
            strategy = option
        elif option == b"LIMIT" and more:
            place += 1
            limit = integer(args[place])
            if limit < 0:
                raise CommandError(_NEGATIVE_LIMIT)
        elif option in POLICIES and (more or not adds):
            if references is not None:
                raise CommandError(SYNTAX)
            references = option
        elif adds and ((option == b"IDMPAUTO" and more) or (option == b"IDMP" and more > 1)):
            if producer is not None:
                raise CommandError(_PRODUCED_TWICE)
            producer = args[place + 1]
            if not producer:
                raise CommandError(_NO_PRODUCER % option)
            place += 1
            if option == b"IDMP":
                place += 1
                publication = args[place]
                if not publication:
                    raise CommandError(_NO_PUBLICATION)
        elif adds and option == b"NOMKSTREAM":
            may_create = False
        elif adds:
            ms, seq = wanted_id(word)
            break
        else:
            raise CommandError(SYNTAX)
        place += 1
    if limit and strategy is None:
        raise CommandError(_LIMIT_WITHOUT_STRATEGY)
    if not adds and strategy is None:
        raise CommandError(_NO_STRATEGY)
    if limit is not None and not is_approximate:
        raise CommandError(_LIMIT_OF_EXACT)
    if producer is not None and ms is not None:
        raise CommandError(_ONCE_WITH_ID)
    trim = None
    if strategy is not None:
        trim = Trimming(max_length, min_id, is_approximate, limit, references or KEEPREF)
    return Addition(ms, seq, place + 1, may_create, trim, producer, publication)
