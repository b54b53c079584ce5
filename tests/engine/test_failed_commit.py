"""A turn that can't be committed: what it would have acknowledged is an error, and nothing else is."""

from __future__ import annotations

import pytest
from recorded_session import House

from rlite_pubsub.storage.errors import StoreError
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
