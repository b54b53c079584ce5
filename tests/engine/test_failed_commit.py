"""A turn that can't be committed: what it would have acknowledged is an error, and nothing else is."""

from __future__ import annotations

import lmdb
import pytest
from recorded_session import House

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.errors import StoreError, StoreFull
from rlite_pubsub.storage.turn import Turn

OK = b"+OK\r\n"


@pytest.fixture
def disk(house: House, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """It fails as long as it is told to."""
    state = {"fails": True}
    end = house.data.end

    def refuse(turn: Turn, *, commit: bool) -> None:
        end(turn, commit=commit and not state["fails"])
        if commit and state["fails"]:
            raise StoreError("the disk is on fire")

    monkeypatch.setattr(house.data, "end", refuse)
    return state


def test_transaction_that_has_begun_in_the_same_turn_goes_on(house: House, disk: dict[str, bool]) -> None:
    """Its EXEC may come in a later turn: MULTI answered with an error and EXEC with replies is what no client can
    read."""
    writer, reader = house.session(), house.session()
    writer.waiting.append([b"SET", b"k", b"v"])
    writer.resume()
    reader.waiting += [[b"MULTI"], [b"GET", b"k"]]
    reader.resume()
    assert writer.heard().startswith(b"-MISCONF")
    assert reader.heard() == OK + b"+QUEUED\r\n"
    disk["fails"] = False
    assert reader.do("EXEC") == b"*1\r\n$-1\r\n"


def test_what_was_read_of_it_is_not_so(house: House, disk: dict[str, bool]) -> None:
    writer, reader, executor = house.session(), house.session(), house.session()
    writer.waiting.append([b"SET", b"k", b"v"])
    writer.resume()
    reader.waiting += [[b"CLIENT", b"SETNAME", b"reader"], [b"GET", b"k"]]
    reader.resume()
    executor.waiting += [[b"MULTI"], [b"GET", b"k"], [b"EXEC"]]
    executor.resume()
    assert writer.heard().startswith(b"-MISCONF")
    heard = reader.heard()
    assert heard.startswith(OK + b"-MISCONF") and heard.count(b"\r\n") == 2
    executed = executor.heard()
    assert executed.startswith(OK + b"+QUEUED\r\n") and b"-MISCONF" in executed


def test_what_was_committed_in_the_midst_of_the_turn_stays_acknowledged(house: House, disk: dict[str, bool]) -> None:
    """Somebody needs a transaction of the keys' environment, as ACL SETUSER does: the turn gives way."""
    first, second = house.session(), house.session()
    disk["fails"] = False
    first.waiting.append([b"SET", b"k", b"v"])
    first.resume()
    house.data.write(lambda txn: txn.put(b"\xffother", b""))
    disk["fails"] = True
    second.waiting.append([b"SET", b"j", b"v"])
    second.resume()
    assert second.heard().startswith(b"-MISCONF")
    assert first.heard() == OK
    disk["fails"] = False
    assert first.do("MGET", "k", "j") == b"*2\r\n$1\r\nv\r\n$-1\r\n"


@pytest.fixture
def gives_way(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """INFO needs a transaction of its own, as it does in a server."""
    info = TABLE.resolve([b"info"])
    plainly = info.handler
    assert plainly is not None

    def answer(session: CommandSession, args: list[bytes]) -> Reply:
        house.data.read(lambda txn: None)
        return plainly(session, args)

    monkeypatch.setattr(info, "handler", answer)


@pytest.mark.usefixtures("gives_way")
def test_who_waits_for_what_was_committed_in_the_midst_of_the_turn_gets_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the transaction meets an error before anybody was served."""
    echo = TABLE.resolve([b"echo"])

    def fail(session: CommandSession, args: list[bytes]) -> Reply:
        house.engine.keyspace.writing()
        raise StoreError("the disk is on fire")

    waiting, writer = house.session(), house.session()
    assert waiting.do("BLPOP", "list", "0") == b""
    with monkeypatch.context() as patched:
        patched.setattr(echo, "handler", fail)
        for words in (["MULTI"], ["RPUSH", "list", "x"], ["INFO", "server"], ["RPUSH", "list", "y"], ["ECHO", "m"]):
            writer.do(*words)
        assert writer.do("EXEC").startswith(b"*4\r\n:1\r\n$")
    assert waiting.heard() == b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"
    assert writer.do("EXISTS", "list") == b":0\r\n"


@pytest.mark.usefixtures("gives_way")
def test_who_waits_behind_one_whose_answer_is_taken_back_is_served(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, writer = house.session(), house.session(), house.session()
    for waiting in (first, second):
        assert waiting.do("BLPOP", "list", "0") == b""
    for words in (["MULTI"], ["RPUSH", "list", "x"], ["INFO", "server"]):
        writer.do(*words)
    end, commits = house.data.end, 0

    def refuse_the_second(turn: Turn, *, commit: bool) -> None:
        nonlocal commits
        commits += commit
        end(turn, commit=commit and commits != 2)
        if commit and commits == 2:
            raise StoreError("the disk is on fire")

    monkeypatch.setattr(house.data, "end", refuse_the_second)
    writer.do("EXEC")
    assert first.heard().startswith(b"-MISCONF")
    assert second.heard() == b"*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"
    assert writer.do("EXISTS", "list") == b":0\r\n"


@pytest.mark.sources("replaces a method of a compiled class")
@pytest.mark.parametrize("limit", ["maxmemory", "store-quota"])
def test_command_for_which_room_is_looked_for_is_refused_where_the_turn_does_not_fit(
    house: House, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Looking means writing what the turn has changed before, and the map may be full."""
    session, other = house.session(), house.session()
    session.do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    if limit == "maxmemory":
        session.do("CONFIG", "SET", "maxmemory", "100mb")
    session.waiting.append([b"SET", b"k", b"v"])
    session.resume()
    if limit == "store-quota":
        monkeypatch.setattr(house.data.room, "full", StoreFull(house.data.path, 1 << 20))

    def settle() -> None:
        monkeypatch.undo()
        raise lmdb.MapFullError("of this test")

    monkeypatch.setattr(house.engine.keyspace, "settle", settle)
    other.waiting += [[b"SET", b"j", bytes(2 << 20)]]  # more than is let through between two looks
    other.resume()
    assert other.heard().startswith(b"-OOM")
    assert session.heard().startswith(b"-OOM")
    assert session.do("MGET", "k", "j") == b"*2\r\n$-1\r\n$-1\r\n"
