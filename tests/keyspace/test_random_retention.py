"""Retention against a list: whatever happens to a topic, by two processes, what is due goes and nothing else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from keeper import Keeper

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics.entry_ids import Id
from rlite_pubsub.storage.topics.topic_settings import UNSAID, RetentionLimits

NAMES = (b"ruled", b"free", b"other")
RULES = [(), ((b"ruled", RetentionLimits(entries=7)),), ((b"*", RetentionLimits(age_ms=50, size_bytes=700)),)]

Step = tuple[str, int, int]


class Model:
    """One topic, as it should be."""

    def __init__(self) -> None:
        self.name = b"free"
        self.own = RetentionLimits(UNSAID, UNSAID, UNSAID)
        self.rules: tuple[tuple[bytes, RetentionLimits], ...] = ()
        self.entries: list[tuple[Id, int]] = []  # (id, bytes)
        self.last: Id = (0, 0)

    def limits(self) -> RetentionLimits:
        said = next((limits for pattern, limits in self.rules if pattern in (self.name, b"*")), RetentionLimits())
        return RetentionLimits(*[own if own != UNSAID else rule for own, rule in zip(self.own, said, strict=True)])

    def trim(self, now_ms: int) -> None:
        age_ms, entries, size_bytes = self.limits()
        if age_ms:
            self.entries = [entry for entry in self.entries if entry[0][0] >= now_ms - age_ms]
        if entries:
            self.entries = self.entries[-entries:]
        while size_bytes and sum(size for _, size in self.entries) > size_bytes:
            del self.entries[0]


def found(keeper: Keeper, name: bytes) -> Topic:
    topic = keeper.keyspace.for_change(0, name)
    assert isinstance(topic, Topic)
    return topic


def play(keepers: list[Keeper], model: Model, steps: list[Step]) -> None:
    clock = keepers[0].clock
    for number, (what, one, other) in enumerate(steps):
        keeper = keepers[number % len(keepers)]
        if what == "append":
            topic = found(keeper, model.name)
            for _ in range(one % 30 + 1):
                model.last = (clock.ms, model.last[1] + 1) if model.last[0] == clock.ms else (clock.ms, 0)
                entry = encode_entry(model.last, [b"f", b"x" * (other % 90)])
                topic.append(model.last, entry)
                model.entries.append((model.last, len(entry)))
        elif what == "delete" and model.entries:
            gone = {model.entries[place % len(model.entries)][0] for place in (one, other, 0)}
            found(keeper, model.name).delete(sorted(gone))
            model.entries = [entry for entry in model.entries if entry[0] not in gone]
        elif what == "limit":
            field = RetentionLimits._fields[one % 3]
            model.own = model.own._replace(**{field: (UNSAID, 0, 3, 20, 400)[other % 5]})
            keeper.retention.set_own(found(keeper, model.name), model.own)
        elif what == "rename":
            topic = found(keeper, model.name)
            name = NAMES[one % len(NAMES)]
            if name != model.name:
                keeper.keyspace.move(topic, 0, name)
                model.name = name
        elif what == "rules":
            model.rules = RULES[one % len(RULES)]
            keeper.rule(*model.rules)
        keeper.end_turn()
        if what == "wait":
            clock.ms += one % 60
            keeper.work()
            model.trim(clock.ms)
            assert keepers[-1].ids(model.name) == [entry_id for entry_id, _ in model.entries]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "delete", "limit", "limit", "rename", "rules", "wait", "wait"]),
        st.integers(0, 1000),
        st.integers(0, 1000),
    ),
    max_size=40,
)


@given(steps=STEPS)
@settings(max_examples=300, deadline=None)
def test_what_is_due_goes_and_nothing_else(tmp_path_factory: object, steps: list[Step]) -> None:
    folder: Path = tmp_path_factory.mktemp("keys")  # type: ignore[attr-defined]
    first = Keeper(folder)
    keepers = [first, Keeper(folder, first)]
    first.topic(b"free")
    model = Model()
    try:
        play(keepers, model, [*steps, ("wait", 0, 0), ("wait", 59, 0), ("wait", 59, 0)])
    finally:
        first.data.close()
