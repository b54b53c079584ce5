"""TIME, saving, SHUTDOWN and LOLWUT."""

from __future__ import annotations

import pytest
from recorded_session import House

from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.store import Store


def test_time_is_in_seconds_and_microseconds(house: House) -> None:
    house.clock.now += 0.25
    assert house.session().do("TIME") == b"*2\r\n$10\r\n1700000000\r\n$6\r\n250000\r\n"


def test_all_that_is_committed_is_saved_now(house: House) -> None:
    assert house.session().do("LASTSAVE") == b":1700000000\r\n"


def test_saving_brings_the_store_to_the_disk(house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    with Store.open(str(tmp_path)) as store:
        synced = []
        monkeypatch.setattr(store.data, "sync", lambda: synced.append(True))
        house.engine.syncing = Syncing(store.data)
        session = house.session()
        assert session.do("SAVE") == b"+OK\r\n"
        assert session.do("BGSAVE") == session.do("BGSAVE", "schedule") == b"+Background saving started\r\n"
        assert session.do("BGREWRITEAOF") == b"+Background append only file rewriting started\r\n"
        assert len(synced) == 4


def test_a_store_that_cannot_be_synced_is_an_error(house: House, tmp_path: object) -> None:
    store = Store.open(str(tmp_path))
    house.engine.syncing = Syncing(store.data)
    store.close()
    assert house.session().do("SAVE").startswith(b"-ERR the store at ")


def test_bgsave_takes_no_other_word(house: House) -> None:
    assert house.session().do("BGSAVE", "x") == b"-ERR syntax error\r\n"


def test_in_a_transaction_saving_is_put_off(house: House) -> None:
    session = house.session()
    session.do("MULTI")
    session.do("BGSAVE")
    assert session.do("EXEC") == b"*1\r\n+Background saving scheduled\r\n"


@pytest.mark.parametrize("words", [(), ("SAVE",), ("NoSave",), ("NOW", "FORCE"), ("SAVE", "NOW", "FORCE")])
def test_shutdown_stops_without_a_reply(house: House, words: tuple[str, ...]) -> None:
    stopped = []
    house.engine.shutdown = lambda: stopped.append(True)
    assert house.session().do("SHUTDOWN", *words) == b""
    assert stopped == [True]


def test_shutdown_saves_unless_it_is_told_not_to(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    with Store.open(str(tmp_path)) as store:
        synced = []
        monkeypatch.setattr(store.data, "sync", lambda: synced.append(True))
        house.engine.syncing = Syncing(store.data)
        house.engine.shutdown = lambda: None
        house.session().do("SHUTDOWN", "NOSAVE")
        assert not synced
        house.session().do("SHUTDOWN")
        assert synced


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("x",), b"syntax error"),
        (("SAVE", "NOSAVE"), b"syntax error"),
        (("ABORT", "NOW"), b"syntax error"),
        (("ABORT",), b"No shutdown in progress."),
    ],
)
def test_shutdown_refuses_what_makes_no_sense(house: House, words: tuple[str, ...], error: bytes) -> None:
    house.engine.shutdown = lambda: pytest.fail("stopped")
    assert house.session().do("SHUTDOWN", *words) == b"-ERR %b\r\n" % error


def test_an_embedded_store_cannot_be_shut_down(house: House) -> None:
    assert house.session().do("SHUTDOWN").startswith(b"-ERR Errors trying to SHUTDOWN")


def test_lolwut_names_both_versions(house: House) -> None:
    session = house.session()
    assert b"Redis ver. 7.0.15, rlite-pubsub " in session.do("LOLWUT")
    assert b"Redis ver. 7.0.15" in session.do("LOLWUT", "VERSION", "5", "1", "2")
    assert session.do("LOLWUT", "VERSION", "x") == b"-ERR value is not an integer or out of range\r\n"
