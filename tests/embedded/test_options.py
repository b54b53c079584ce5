"""The first who opens a store in a process says its quota and its durability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

import rlite_pubsub


def test_the_first_opener_gives_quota_and_durability(folder: Path) -> None:
    with rlite_pubsub.Redis(folder, store_quota="2mb", appendfsync="always") as client:
        assert client.config_get("appendfsync", "store-quota") == {"appendfsync": "always", "store-quota": "2097152"}
        assert client._host is None or client._host.store.data.durability == "always"
        with pytest.raises(redis.ResponseError, match="full: its quota is 2097152 bytes"):
            for number in range(100):
                client.set(f"key:{number}", "x" * 100_000)


def test_without_options_it_is_everysec(client: rlite_pubsub.Redis) -> None:
    assert client.config_get("appendfsync") == {"appendfsync": "everysec"}


async def test_the_url_says_it_too(folder: Path) -> None:
    url = f"rlite://{folder}?store_quota=1gb&appendfsync=no"
    with rlite_pubsub.from_url(url) as client:
        assert client.config_get("appendfsync", "store-quota") == {"appendfsync": "no", "store-quota": "1073741824"}
    async with rlite_pubsub.asyncio.from_url(url.replace("=no", "=always")) as aclient:
        await aclient.ping()
        assert await aclient.config_get("appendfsync") == {"appendfsync": "always"}


@pytest.mark.parametrize(
    "options", [{"appendfsync": "sometimes"}, {"store_quota": "much"}, {"store_quota": -1}, {"appendfsync": 1}]
)
def test_nonsense_is_refused_when_the_client_is_made(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        rlite_pubsub.Redis(folder, **options)
    with pytest.raises(ValueError, match=next(iter(options))):
        rlite_pubsub.asyncio.Redis(folder, **options)
    assert not folder.exists()


def test_a_later_opener_says_the_same_or_nothing(folder: Path) -> None:
    with rlite_pubsub.Redis(folder, appendfsync="always", store_quota=1 << 30) as first:
        first.ping()
        for options in ({}, {"appendfsync": "always"}, {"store_quota": "1gb"}):
            with rlite_pubsub.Redis(folder, **options) as same:
                assert same.publish("news", "x") == 0
                assert same.ping()
        for differing, told in (
            ({"appendfsync": "everysec"}, "with appendfsync always, not everysec"),
            ({"store_quota": "2gb"}, "with a quota of 1073741824 bytes, not 2147483648"),
        ):
            with rlite_pubsub.Redis(folder, **differing) as other:
                with pytest.raises(rlite_pubsub.StoreUnavailable, match=told):
                    other.publish("news", "x")
                with pytest.raises(rlite_pubsub.StoreUnavailable, match=told):
                    other.ping()
        assert first.ping()
    with rlite_pubsub.Redis(folder, appendfsync="everysec") as anew:
        assert anew.ping()


def test_appendfsync_can_be_changed_while_it_is_open(client: rlite_pubsub.Redis) -> None:
    client.config_set("appendfsync", "always")
    client.publish("news", "x")
    assert client._host is not None
    assert client._host.store.data.durability == "always"


def test_without_a_quota_the_disk_is_the_limit(folder: Path) -> None:
    for options in ({}, {"store_quota": 0}):
        with rlite_pubsub.Redis(folder, **options) as client:
            assert client.config_get("store-quota") == {"store-quota": "0"}
            client.publish("news", "x")
            assert client._host is not None
            assert client._host.store.data.quota_bytes > 1 << 39
