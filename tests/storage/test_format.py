"""FORMAT.md, byte for byte: one record of each kind must be what this version's golden file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.storage import attachments, durables, format, forms, keys, losses, mailboxes, receivers, subscribers
from rlite_pubsub.storage.attachments import Attachment
from rlite_pubsub.storage.durables import Durable
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mailboxes import Mailbox
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.subscribers import Record

GOLDEN = Path(__file__).parent / "golden" / f"format_{format.VERSION}.txt"
SUBSCRIBER = 0x0123456789ABCDEF


def one_of_each(txn: Txn) -> None:
    counts = {
        ("channels", b"news"): 3,
        ("patterns", b"n*"): 1,
        ("shards", b"\x00\xff"): 2,
        ("channels", b"long" * 64): 1,
    }
    receivers.set_counts(txn, SUBSCRIBER, counts)
    attachments.put(txn, 1, Attachment(SUBSCRIBER, 9))
    subscribers.put(txn, SUBSCRIBER, Record(4321, "embedded", 1_700_000_000_123, 987_654))
    mailboxes.deliver(txn, b"hello", [(Mailbox(SUBSCRIBER), b"n*"), (Mailbox(SUBSCRIBER, 9), b"")])
    mailboxes.deliver(txn, b"once", [(Mailbox(SUBSCRIBER, 9), b"")])


def one_of_each_that_lasts(txn: Txn) -> None:
    durables.put(txn, Durable(b"d", 1, 60, 1000, 10, 1_700_000_000_000, 1_700_000_000_001, 3, is_expired=True))
    note = forms.pack(2, 1, forms.pack_forms((None, b"n*")))
    mailboxes.deliver(txn, b"hello", [(Mailbox(1), note)])
    losses.add(txn, 1, b"news", 3, 1_700_000_000_002)
    losses.add(txn, 1, b"long" * 64, 1, 1_700_000_000_002)


def dump(name: str, txn: Txn) -> list[str]:
    return [f"{name} {key.hex()} {value.hex()}" for key, value in txn.cursor()]


def test_each_record_is_what_the_golden_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format, "boot_id", lambda: b"00112233-4455-6677-8899-aabbccddeeff")
    with Store.open(tmp_path) as store:
        store.live.write(one_of_each)
        store.data.write(one_of_each_that_lasts)
        found = store.live.read(lambda txn: dump("live", txn)) + store.data.read(lambda txn: dump("data", txn))
    golden = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    assert found == golden


def test_the_golden_file_holds_every_kind_of_record() -> None:
    first = {bytes.fromhex(line.split(" ")[1])[:1] for line in GOLDEN.read_text().splitlines() if line[0] != "#"}
    public = [value for name, value in vars(keys).items() if name.isupper() and not name.startswith("_")]
    assert first == {key[:1] for key in public}
