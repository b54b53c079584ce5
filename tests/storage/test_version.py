"""The hint that routes have changed."""

from __future__ import annotations

from pathlib import Path

from rlite_pubsub.storage.names import version
from rlite_pubsub.storage.store import Store


def test_number_of_an_older_life_of_the_store_is_never_announced_again(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        store.routes.announce(store.live.write(version.bump), patterns=True)
        store.routes.announce_commons(1)
        store.routes.numbers[3] = 1
        announced = list(store.routes.numbers)

    with Store.open(tmp_path / "store") as store:
        found = list(store.routes.numbers)

    assert announced == [1, 1, 1, 1]
    assert min(found) >= 1 << 60


def test_whoever_opens_a_store_that_is_open_already_sees_what_was_announced(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        store.routes.announce(7, patterns=False)

        with Store.open(tmp_path / "store") as same:
            assert same.routes.numbers[0] == 7
            assert same.routes.numbers[1] != 7
