"""FORMAT.md, byte for byte: one record of each kind must be what this version's golden file says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from struct import Struct

import pytest

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.storage import databases, format
from rlite_pubsub.storage import store as store_module
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, ColdState, GroupInfo
from rlite_pubsub.storage.commons import (
    changed_keys,
    function_libraries,
    link_records,
    replica_stream,
    shard_rows,
    shared_settings,
)
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.groups import consumers, groups, in_flight, pending, released
from rlite_pubsub.storage.groups.consumers import ConsumerRecord
from rlite_pubsub.storage.groups.group_settings import GroupSettings
from rlite_pubsub.storage.groups.groups import GroupRecord
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.keys import elements, fields, garbage, key_records, members, ranks, scores
from rlite_pubsub.storage.keys.key_records import Space
from rlite_pubsub.storage.keys.order import Order
from rlite_pubsub.storage.keys.rows import Rows
from rlite_pubsub.storage.mail import allowances, forms, letters, losses, mailboxes, overflows
from rlite_pubsub.storage.mail.allowances import Allowance
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import attachments, client_reports, durables, receivers, subscribers
from rlite_pubsub.storage.names.attachments import Attachment
from rlite_pubsub.storage.names.client_reports import Asked
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.subscribers import SubscriberRecord
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics import (
    chunks,
    deadlines,
    deferred,
    entry_ids,
    publications,
    segments,
    stages,
    topic_settings,
    trim_marks,
    type_index,
)
from rlite_pubsub.storage.topics.deadlines import GroupRow, TopicRow
from rlite_pubsub.storage.topics.publications import Known, PublicationState
from rlite_pubsub.storage.topics.segments import Segment
from rlite_pubsub.storage.topics.topic_settings import UNSAID, AppendRules, RetentionLimits, Rule, TopicSettings

GOLDEN = Path(__file__).parent / "golden" / f"format_{format.VERSION}.txt"
SUBSCRIBER = 0x0123456789ABCDEF
PUT_MS = 1_700_000_000_003
TOPIC = 7
EXPIRES_MS = 1_700_000_000_004


def one_of_each(txn: Txn) -> None:
    counts = {
        ("channels", b"news"): 3,
        ("patterns", b"n*"): 1,
        ("shards", b"\x00\xff"): 2,
        ("channels", b"long" * 64): 1,
        ("waits", b"\x00\x0fjobs"): 2,
        ("trackers", b""): 1,
    }
    receivers.set_counts(txn, SUBSCRIBER, counts)
    attachments.put(txn, 1, Attachment(SUBSCRIBER, 9))
    record = SubscriberRecord(4321, "embedded", 1_700_000_000_123, 987_654, 4_026_531_836, "host")
    subscribers.put(txn, SUBSCRIBER, record)
    client_reports.ask(txn, Asked(1_700_000_000_123, 1_700_000_000_124))
    client_reports.put(txn, SUBSCRIBER, b"*3\r\n:1\r\n:0\r\n*0\r\n")
    client_reports.ask_to_close(txn, SUBSCRIBER, 9)
    mailboxes.deliver(txn, b"hello", [(Mailbox(SUBSCRIBER), b"n*"), (Mailbox(SUBSCRIBER, 9), b"")], PUT_MS, 3)
    mailboxes.deliver(txn, b"once", [(Mailbox(SUBSCRIBER, 9), b"")], PUT_MS)
    a_mailbox_at_its_limit(txn)


def a_mailbox_at_its_limit(txn: Txn) -> None:
    """Of one that has two letters, of which one has to go."""
    full = SUBSCRIBER + 1
    allowances.put(txn, full, Allowance(200_000, 100_000, 60, drops_oldest=True))
    for payload in (b"x" * 150_000, b"y" * 60_000):
        mailboxes.deliver(txn, letters.pack_one(0, b"news", payload), [(Mailbox(full), b"")], PUT_MS)
    overflows.keep(txn, full, PUT_MS + 1)
    mailboxes.drop(txn, Mailbox(full))


def one_of_each_that_lasts(txn: Txn) -> None:
    durables.put(txn, Durable(b"d", 1, 60, 1000, 10, 1_700_000_000_000, 1_700_000_000_001, 3, is_expired=True))
    note = forms.pack(2, 1, forms.pack_forms((None, b"n*")))
    mailboxes.deliver(txn, b"hello", [(Mailbox(1), note)], PUT_MS)
    losses.add(txn, 1, b"news", 3, 1_700_000_000_002)
    losses.add(txn, 1, b"long" * 64, 1, 1_700_000_000_002)
    one_of_each_key(txn)


def one_of_each_key(txn: Txn) -> None:
    space, topic = key_records.new_space(txn), key_records.new_topic(txn)
    key_records.put_space(txn, 15, Space(space, 2, 1))
    place = key_records.place(space, b"lock")
    key_records.put(txn, place, key_records.pack(key_records.STRING, 2, EXPIRES_MS, 7, b"lock", b"mine"))
    key_records.set_expiry(txn, place, 0, EXPIRES_MS)
    body = b"the topic's own"
    packed = key_records.pack(key_records.TOPIC, 0, 0, 8, b"log", body)
    key_records.put(txn, key_records.place(space, b"log"), packed)
    ids = [entry_ids.pack((1, 2)), entry_ids.pack((3, 4))]
    entries = [encode_entry((1, 2), [b"a", b"1"]), encode_entry((3, 4), [b"b", b"22"])]
    txn.put(chunks.prefix(topic) + ids[0], chunks.pack(ids, entries))
    txn.put(elements.key(11, -1), b"task")
    txn.put(members.key(12, b"member"), b"member")
    txn.put(fields.key(13, b"field"), fields.pack(b"field", b"value", EXPIRES_MS))
    fields.set_due(txn, 13, fields.key(13, b"field"), 0, EXPIRES_MS)
    txn.put(fields.key(13, b"other"), fields.pack(b"other", b"value", 0))
    fields.set_expiring(txn, b"", fields.expiring(EXPIRES_MS, key_records.place(space, b"hash")))
    txn.put(scores.key(14, b"member"), scores.pack(-2.5, b"member"))
    order = Order(14, 0, Rows())
    order.begin()
    order.add(txn, ranks.place(-2.5, b"member"))
    order.add(txn, ranks.place(0.0, b"long" * 200))
    order.add(txn, ranks.place(0.0, b"more" * 200))
    order.settle(txn)
    publications.put_state(txn, TOPIC, PublicationState(added=3, duplicates=2, producers=1, known=1, next_serial=3))
    publications.add(txn, TOPIC, Known(b"p" * 16, b"q" * 16, 2, (1_700_000_000_004, 5), PUT_MS))
    garbage.add(txn, garbage.SPACE, 9)
    garbage.add(txn, garbage.TOPIC, 10)


def groups_of_a_topic(txn: Txn) -> None:
    settings = GroupSettings(timeout_ms=30_000, dead_letter=b"dead\xff")
    groups.put(txn, TOPIC, GroupRecord(b"g", 1, (1_700_000_000_004, 5), 6, 2, 1, 3, settings))
    groups.put(txn, TOPIC, GroupRecord(b"long" * 64, 2, (0, 0), None, 0, 0, 0, GroupSettings()))
    consumers.add(txn, TOPIC, 1, ConsumerRecord(3, b"c", 1_700_000_000_005, 2))
    consumers.add(txn, TOPIC, 1, ConsumerRecord(4, b"long" * 64, 1_700_000_000_006, 0))
    ids = b"".join(entry_ids.pack((1_700_000_000_004, seq)) for seq in (4, 5))
    pending.add(txn, pending.prefix(TOPIC, 1), (3, 1_700_000_000_005, 1), ids)


def what_is_to_be_done(txn: Txn) -> None:
    first, last = entry_ids.pack((1_700_000_000_004, 4)), entry_ids.pack((1_700_000_000_004, 5))
    in_flight.note(txn, TOPIC, 1, 1_700_000_000_005, in_flight.AGAIN, first, last)
    released.put(txn, released.prefix(TOPIC, 1), Released(last, EXPIRES_MS, 2))
    deferred.add(txn, TOPIC, EXPIRES_MS, b"*2\r\n$1\r\na\r\n$1\r\n1\r\n")
    deadlines.put_topic(txn, TOPIC, TopicRow(EXPIRES_MS, 1, key_records.place(1, b"log")))
    deadlines.put_group(txn, TOPIC, key_records.place(1, b"log"), 1, GroupRow(EXPIRES_MS + 1, b"g"))


def what_is_kept(txn: Txn) -> None:
    place = key_records.place(1, b"log")
    topic_settings.put(txn, TOPIC, TopicSettings(place, EXPIRES_MS, RetentionLimits(UNSAID, 5, 0), 6, 600), None)
    topic_settings.put(txn, TOPIC + 1, TopicSettings(place, appends=AppendRules(65_536, 100)), None)
    topic_settings.put(txn, TOPIC + 2, TopicSettings(place, appends=AppendRules(0, 100, 7, 8, 1)), None)
    rules = [Rule(b"a*", RetentionLimits(age_ms=1000)), Rule(b"\xff", RetentionLimits(entries=2, size_bytes=3))]
    topic_settings.put_rules(txn, rules)
    trim_marks.note(txn, TOPIC, (1, 2), 999, 1000)
    type_index.extend(txn, TOPIC, {b"news": [entry_ids.pack((1, 2)), entry_ids.pack((1, 3))]}, (1, 3))


def what_is_common(txn: Txn) -> None:
    shared_settings.put_settings(txn, {"notify-keyspace-events": b"xKE"})
    shared_settings.put_users(txn, {b"alice": b"user alice on nopass resetchannels -@all +get"})
    function_libraries.put(txn, {b"lib": b"#!lua name=lib\n-- code", b"long" * 64: b"#!lua name=longlong\n"})
    link_records.put(txn, "central", b'{"name":"central","url":"redis://h"}')


def which_keys_have_changed(txn: Txn) -> None:
    """The row of a transaction: the number of this one is another one whenever there is one more."""
    changed_keys.add(txn, SUBSCRIBER, changed_keys.THESE, [b"lock", b"log"])


def what_is_sharded(txn: Txn) -> None:
    shard_rows.put_directory(txn, b'{"format":1,"epoch":1,"members":[],"runs":[]}')
    shard_rows.put_leaving(txn, b'[[[1,2],"%b"]]' % (b"ab" * 20))
    shard_rows.begin_arrival(txn, TOPIC)


def what_replicas_are_told(txn: Txn) -> None:
    history = b"0123456789abcdef0123456789abcdef01234567"
    stream = replica_stream.Stream(100, 105, 1 << 20, EXPIRES_MS, PUT_MS, 3, 29, history)
    replica_stream.append(txn, stream, b"*1\r\n$4\r\nPING\r\n", PUT_MS + 1)
    record = replica_stream.ReplicaRecord(105, 1 << 28, 100, PUT_MS, EXPIRES_MS, SUBSCRIBER, 6380, 2, b"127.0.0.1")
    replica_stream.put_replica(txn, b"replica1", record)


def which_history_goes_on(live: Txn) -> None:
    replica_stream.go_on_with(live, b"0123456789abcdef0123456789abcdef01234567")


def what_is_cold(txn: Txn) -> None:
    group = GroupInfo((1, 2), (3, 4), 2, 61)
    block = BlockInfo("log/7/1-2_3-4.parquet", (1, 2), (3, 4), 2, 61, 999, bytes(range(32)), EXPIRES_MS, (group,))
    cold_blocks.put(txn, TOPIC, block)
    cold_blocks.put_state(txn, TOPIC, ColdState((3, 4), 1, 30, 1, 30))
    cold_blocks.bury(txn, TOPIC, entry_ids.pack((1, 2)), 31)
    cold_blocks.copy(txn, TOPIC, TOPIC + 1)
    cold_blocks.put(txn, TOPIC, replace(block, path="log/7/5-0_5-0.parquet", first=(5, 0), last=(5, 0)))
    cold_blocks.remove(txn, TOPIC, cold_blocks.last(txn, TOPIC) or block, EXPIRES_MS)


def what_is_closed(txn: Txn) -> None:
    closed = Segment(b"{tag}jobs", (1, 2), (3, 4), 2, 61, 5, 200, 6, 8)
    gone = Segment(b"{other}jobs", (0, 1), (1, 1), 3, 139, 3, 139, 3, 6)
    segments.put(txn, TOPIC, gone)
    segments.put(txn, TOPIC, closed)
    segments.remove(txn, TOPIC, gone)


def what_is_staged(txn: Txn) -> None:
    writer = stages.Writer(b"app", 5, 2, 2**64 - 1)
    ids = [entry_ids.pack((1, 2)), entry_ids.pack((3, 4))]
    bodies = [b"*2\r\n$1\r\na\r\n$1\r\n1\r\n", b"*2\r\n$1\r\nb\r\n$2\r\n22\r\n"]
    stages.put(txn, writer, 0, stages.StagedRows(PUT_MS, 2, 15, True, ids[0], ids[1], b"log"), bodies, ids)
    stages.put(txn, writer, 1, stages.StagedRows(PUT_MS, 2, 15, False, b"", b"", b"log"), bodies, [])
    stages.mark(txn, b"app", stages.Marker(4, PUT_MS, 0))
    stages.mark(txn, b"long" * 64, stages.Marker(1, PUT_MS, EXPIRES_MS))


def dump(name: str, txn: Txn) -> list[str]:
    return [f"{name} {key.hex()} {value.hex()}" for key, value in txn.cursor()]


def test_each_record_is_what_the_golden_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (format, store_module):
        monkeypatch.setattr(module, "boot_id", lambda: b"00112233-4455-6677-8899-aabbccddeeff")
    with Store.open(tmp_path) as store:
        store.live.write(one_of_each)
        store.live.write(which_history_goes_on)
        store.data.write(one_of_each_that_lasts)
        store.data.write(groups_of_a_topic)
        store.data.write(what_is_kept)
        store.data.write(what_is_to_be_done)
        store.data.write(what_is_cold)
        store.data.write(what_is_closed)
        store.data.write(what_is_staged)
        store.data.write(what_is_common)
        store.data.write(which_keys_have_changed)
        store.data.write(what_is_sharded)
        store.data.write(what_replicas_are_told)
        found = store.live.read(lambda txn: dump("live", txn)) + store.data.read(lambda txn: dump("data", txn))
    golden = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    assert found == golden


def test_the_golden_file_holds_every_kind_of_record() -> None:
    first = {bytes.fromhex(line.split(" ")[1])[:1] for line in GOLDEN.read_text().splitlines() if line[0] != "#"}
    public = [value for name, value in vars(databases).items() if name.isupper() and not name.startswith("_")]
    assert first == {key[:1] for key in public}


def test_each_kind_of_record_begins_with_a_byte_of_its_own() -> None:
    first = [value for name, value in vars(databases).items() if name.isupper() and not name.startswith("_")]
    assert len(first) == len(set(first))


def restored(folder: Path, version: int) -> None:
    """A store that holds the records of an older version's golden file."""
    golden = (GOLDEN.parent / f"format_{version}.txt").read_text().splitlines()
    with Store.open(folder) as store:
        for name, environment in (("live", store.live), ("data", store.data)):
            records = [line.split(" ")[1:] for line in golden if line.startswith(name)]
            environment.write(lambda txn, records=records: put_all(txn, records))


def put_all(txn: Txn, records: list[list[str]]) -> None:
    for key, value in records:
        txn.put(bytes.fromhex(key), bytes.fromhex(value))


def test_what_a_durable_subscriber_had_in_format_1_is_kept_and_what_lived_then_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (format, store_module):
        monkeypatch.setattr(module, "boot_id", lambda: b"")
    restored(tmp_path, 1)
    format_1 = (GOLDEN.parent / "format_1.txt").read_text().splitlines()
    keys_then = {line.split(" ")[1] for line in format_1 if line.startswith("data")}
    golden = [line for line in GOLDEN.read_text().splitlines() if line.startswith("data")]
    expected = [line for line in golden if line.split(" ")[1] in keys_then]
    without_time = [line.replace(f"{PUT_MS:016x}", f"{mailboxes.UNKNOWN_MS:016x}") for line in expected]

    with Store.open(tmp_path) as store:
        assert store.data.read(lambda txn: dump("data", txn)) == without_time
        assert store.live.read(lambda txn: dump("live", txn)) == [f"live 00666f726d6174 {format.VERSION:08x}"]
        assert store.data.read(lambda txn: mailboxes.oldest_ms(txn, Mailbox(1))) == mailboxes.UNKNOWN_MS


def test_all_of_format_2_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (format, store_module):
        monkeypatch.setattr(module, "boot_id", lambda: b"")
    restored(tmp_path, 2)
    format_2 = (GOLDEN.parent / "format_2.txt").read_text().splitlines()
    expected = [line for line in format_2 if line.startswith("data") and not line.startswith("data 00666f726d6174 ")]
    with Store.open(tmp_path) as store:
        assert format.version(store.data) == format.VERSION
        found = store.data.read(lambda txn: dump("data", txn))
    assert [line for line in found if not line.startswith("data 00666f726d6174 ")] == expected


def test_many_letters_of_format_1_are_counted_in_messages_from_then_on(tmp_path: Path) -> None:
    entry_1 = Struct(">QQI")
    counts = [1, 2, 3] * 700
    both = forms.pack_forms((None, b"n*"))

    def fill(txn: Txn) -> None:
        for place, count in enumerate(counts):
            sequence = mailboxes.deliver(txn, b"hello", [(Mailbox(1), b"")])
            note = forms.pack(0, count * 2, both)
            key = Struct(">cQQQ").pack(databases.MAILBOXES, 1, 0, sequence)
            txn.put(key, entry_1.pack(place, place * 5, 5) + note)
        txn.put(databases.FORMAT, (1).to_bytes(4, "big"))

    with Store.open(tmp_path) as store:
        store.data.write(fill)
    with Store.open(tmp_path) as store:
        store.data.write(lambda txn: mailboxes.deliver(txn, b"more", [(Mailbox(1), b"")], PUT_MS, 10))
        backlog = store.data.read(lambda txn: mailboxes.backlog(txn, Mailbox(1)))
        letters = store.data.read(lambda txn: mailboxes.take(txn, Mailbox(1), 1 << 30))

    assert backlog == (sum(counts) + 10, len(counts) * 5 + 4)
    assert [forms.unpack(letter.note).messages // 2 for letter in letters[:-1]] == counts


def test_an_older_store_that_others_have_open_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.data.write(lambda txn: txn.put(databases.FORMAT, (1).to_bytes(4, "big")))
        opened = subprocess.run(
            [sys.executable, "-c", "import sys; from rlite_pubsub.storage.store import Store; Store.open(sys.argv[1])",
             str(tmp_path)], capture_output=True, text=True,
        )  # fmt: skip
    assert "StoreFormatOlder" in opened.stderr
    assert "data.mdb has format 1" in opened.stderr and "once all others have closed it" in opened.stderr
    with Store.open(tmp_path) as store:
        assert format.version(store.data) == format.VERSION


def test_released_entry_of_an_earlier_version_has_no_last_delivery(environment: Environment) -> None:
    of_group, entry = released.prefix(TOPIC, 1), bytes(16)

    def as_before(txn: Txn) -> Released | None:
        released.put(txn, of_group, Released(entry, EXPIRES_MS, 2, 7))
        key = of_group + b"\0" + entry
        txn.put(key, bytes(txn.get(key) or b"")[:16])
        return released.get(txn, of_group, entry)

    assert environment.write(as_before) == Released(entry, EXPIRES_MS, 2, 0)
