"""Users are the store's: what others make of them holds here, whatever was made of them here."""

from __future__ import annotations

import pytest
from recorded_session import House

from rlite_pubsub.engine.access.users import Users


def change(users: Users, rule: bytes) -> bytes:
    """A change that is made here; what the store has then."""
    user = users.changed(b"bob", [rule])
    users.put(user)
    return user.line


def may(users: Users) -> bool:
    bob = users.get(b"bob")
    assert bob is not None
    return b"+get" in bob.line


def test_change_of_another_process_holds_though_it_makes_what_was_known_of_the_store_before(house: House) -> None:
    users = house.engine.users
    granted, revoked = change(users, b"+get"), change(users, b"-get")
    users.follow([revoked])
    change(users, b"+get")
    users.follow([revoked])  # revoked again elsewhere, before we have looked
    assert not may(users)
    change(users, b"-get")
    users.follow([granted])
    assert may(users)


@pytest.mark.parametrize("way", ["deleted", "replaced"])
def test_user_that_is_gone_here_and_made_again_elsewhere_is_there(house: House, way: str) -> None:
    users = house.engine.users
    line = change(users, b"+get")
    users.follow([line])
    if way == "deleted":
        users.delete([b"bob"])
    else:
        users.replace({})
    assert users.get(b"bob") is None
    users.follow([line])
    assert may(users)
