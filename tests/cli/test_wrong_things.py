"""Every command that takes a file, a folder or a URL says, in one line, what the thing is that it can't take."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlite_pubsub
from rlite_pubsub.cli.command_line import main


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, in which we are, with a store, a backup, a file, an empty folder, and nothing called `none`."""
    monkeypatch.chdir(tmp_path)
    with rlite_pubsub.Redis("st") as client:
        client.set("a", 1)
    assert main(["backup", "st", "bk"]) == 0
    Path("file").write_text("hi\n")
    Path("empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("import file new", "file: it is neither an RDB file nor an append-only file of Redis's"),
        ("import none new", "none: No such file or directory"),
        ("import st new", "st: it is a store already"),
        ("import redis://127.0.0.1:1 new", "redis://127.0.0.1:1: Connection refused"),
        ("import st st", "st exists: --merge adds to an existing store"),
        ("export none out.rdb", "there is no store in none"),
        ("export file out.rdb", "file is a file: a store is a folder"),
        ("export bk out.rdb", "bk is a backup, and no store: `rlite-pubsub restore bk STORE` makes one of it"),
        ("export st none/out.rdb", "none is no folder: make it first"),
        ("export st empty", "empty is a folder: name the file to write"),
        ("backup none bk", "there is no store in none"),
        ("backup bk new", "bk is a backup, and no store"),
        ("backup st file", "{}/file is a file: a backup is a folder, or in a bucket"),
        ("backup st st", "it is inside the store st"),
        ("backups st", "{}/st is a store, and no backup"),
        ("backups none", "there is no backup in {}/none"),
        ("verify file", "{}/file is a file: a backup is a folder, or in a bucket"),
        ("verify empty", "{}/empty: there is no backup here"),
        ("restore st new", "{}/st is a store, and no backup"),
        ("restore bk file", "it exists: a backup is restored into a new or empty folder"),
        ("doctor --store none", "there is no store in none"),
        ("doctor --store file", "file is a file: a store is a folder"),
        ("channels --store bk", "bk is a backup, and no store"),
        ("top --store file", "file is a file: a store is a folder"),
    ],
)
def test_a_thing_that_a_command_cannot_take_is_named_as_what_it_is(
    things: Path, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 1
    heard = capsys.readouterr()
    assert said.format(things) in heard.err
    assert heard.err.startswith("rlite-pubsub: ") and heard.err.count("\n") == 1
    assert not Path("new").exists()
