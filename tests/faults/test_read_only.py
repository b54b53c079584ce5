"""A store that this process may not write, and may read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlite_pubsub.storage.store import Store
from tests.faults.program import Start, command, without_power

TOLD = "Permission denied: publishing, subscribing and looking all need write permission for the folder and its files"
USES = {
    "publishing": 'client.publish("news", "x")',
    "subscribing": '(pubsub.subscribe("news"), pubsub.get_message(timeout=PATIENCE_S))',
    "looking": "client.pubsub_channels()",
}


@pytest.fixture(params=["all of it", "its files", "subscribers/"])
def read_only(request: pytest.FixtureRequest, folder: Path) -> Iterator[Path]:
    Store.open(folder).close()
    everything = [folder, *folder.iterdir()]
    chosen = {
        "all of it": everything,
        "its files": [path for path in everything if path.is_file()],
        "subscribers/": [folder / "subscribers"],
    }[request.param]
    for path in chosen:
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield folder
    for path in chosen:
        path.chmod(0o700)


@pytest.mark.parametrize("use", USES)
def test_using_a_read_only_store_is_an_error_that_says_what_is_needed(read_only: Path, start: Start, use: str) -> None:
    program = start(
        f"""
        client = rlite_pubsub.Redis(folder)
        pubsub = client.pubsub()
        try:
            say({USES[use]})
        except Exception as error:
            say(type(error).__name__, error)
        """,
        before_start=without_power,
    )
    told = program.hear()
    if use != "subscribing" and (read_only / "live.mdb").stat().st_mode & 0o200:
        assert told in ("0", "[]"), "only who becomes a subscriber writes to that folder"
    else:
        assert str(read_only) in told and told.endswith(TOLD)


@pytest.mark.parametrize(
    "words", [["channels"], ["subscribers"], ["doctor"], ["publish", "news", "x"], ["subscribe", "news"]], ids=" ".join
)
def test_the_cli_tells_what_a_read_only_store_needs(folder: Path, words: list[str]) -> None:
    Store.open(folder).close()
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.iterdir())
    everything = [folder, *folder.iterdir()]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        said = command(words[0], "-s", str(folder), *words[1:], before_start=without_power)
    finally:
        for path in everything:
            path.chmod(0o700)
    assert said.returncode == 1
    assert said.stderr.startswith("rlite-pubsub: ") and said.stderr.endswith(TOLD + "\n")
    assert said.stderr.count("\n") == 1 and not said.stdout
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.iterdir()) == before
