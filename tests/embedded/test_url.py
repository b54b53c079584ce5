"""A URL names the folder and the options."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlite_pubsub
from rlite_pubsub.embedded.options import options_of


def test_the_path_is_absolute_and_unquoted_and_options_have_their_types() -> None:
    assert options_of("rlite:///srv/my%20store?db=3&decode_responses=yes&health_check_interval=5&client_name=me") == {
        "path": "/srv/my store",
        "db": 3,
        "decode_responses": True,
        "health_check_interval": 5,
        "client_name": "me",
    }


def test_a_path_that_begins_with_a_dot_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert options_of("rlite:///./store?db=1") == {"path": str(tmp_path / "here/store"), "db": 1}
    assert options_of("rlite:///../store") == {"path": str(tmp_path / "store")}
    assert options_of("rlite:///.hidden") == {"path": "/.hidden"}


@pytest.mark.parametrize("url", ["redis:///srv/store", "rlite://srv/store", "rlite:///", "rlite://", "srv/store", ""])
def test_what_names_no_folder_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL of a store|names no folder"):
        rlite_pubsub.from_url(url)


def test_a_client_is_made_from_a_url(folder: Path) -> None:
    with rlite_pubsub.from_url(f"rlite://{folder}?db=2&protocol=3", decode_responses=True) as client:
        assert client.client_list()[0]["db"] == "2"
        assert client.echo("x") == "x"
    with rlite_pubsub.Redis.from_url(f"rlite://{folder}") as client:
        assert client.echo("x") == b"x"


async def test_an_asyncio_client_is_made_from_a_url(folder: Path) -> None:
    async with rlite_pubsub.asyncio.from_url(f"rlite://{folder}?decode_responses=1") as client:
        assert await client.echo("x") == "x"
