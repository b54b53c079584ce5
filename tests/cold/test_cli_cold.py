"""`rlite-pubsub cold`, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cold_logs import NEWS, STORE, log_of, seal
from patience import PATIENCE_S

import rlite_pubsub
from rlite_pubsub.cli import command_line
from rlite_pubsub.cold import manifest
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place

ODD = Origin(STORE, b"\xffodd", 9)


@pytest.fixture
def cold(tmp_path: Path) -> Place:
    """A cold store of two topics."""
    place = open_place("", tmp_path)
    for origin in (NEWS, ODD):
        manifest.write(place, manifest.of(origin, [seal(place, log_of(60, first), origin) for first in (1000, 2000)]))
    return place


def run(tmp_path: Path, *words: str) -> int:
    return command_line.main(["cold", words[0], "--store", str(tmp_path), *words[1:]])


def test_topics_are_listed(cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "list") == 0
    out = capsys.readouterr().out
    assert cold.url in out and "news" in out and "\\xffodd" in out and "120" in out and "2019-2" in out
    assert run(tmp_path, "list", "--json", "--blocks", "--topic", "news") == 0
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    assert (topic["topic"], topic["entries"], topic["first"], topic["last"]) == ("news", 120, "1000-0", "2019-2")
    assert [block["entries"] for block in topic["blocks"]] == [60, 60]


def test_a_whole_store_is_verified(cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "verify") == 0
    assert capsys.readouterr().out == "6 files with 240 entries, nothing wrong\n"


def test_what_is_wrong_is_named_and_is_a_failure(
    cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = manifest.read(cold, "news/7/_manifest.json")
    cold.delete(known.blocks[1].path)
    assert run(tmp_path, "verify") == 1
    out = capsys.readouterr().out
    assert f"missing      {known.blocks[1].path}: this block is not there" in out and "1 wrong" in out
    assert run(tmp_path, "verify", "--json") == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["path"] for line in lines if line.get("state") == "missing"] == [known.blocks[1].path]
    assert lines[-1] == {"files": 6, "entries": 180, "wrong": 1}


def test_manifests_are_rebuilt(cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = cold.read("news/7/_manifest.json")
    cold.write("news/7/_manifest.json", before[:50])
    assert run(tmp_path, "list") == 1
    assert "news/7/_manifest.json: it cannot be read" in capsys.readouterr().err
    assert run(tmp_path, "rebuild") == 0
    assert capsys.readouterr().out == "rebuilt      news/7/_manifest.json: 2 blocks\n"
    assert cold.read("news/7/_manifest.json") == before
    assert run(tmp_path, "rebuild", "--json") == 0
    assert json.loads(capsys.readouterr().out)["manifests"] == []
    assert run(tmp_path, "rebuild", "--force", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["manifests"]) == 2


def test_entries_are_restored_as_json_lines(cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "restore", "--topic", "news", "--from", "1001", "--until", "1001-1") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["id"] for entry in found] == ["1001-0", "1001-1"]
    assert found[0] == {
        "topic": "news",
        "id": "1001-0",
        "fields": [["value", "3 3 3 "], ["kind", {"base64": "/wA="}], ["kind", ""]],
    }


def test_entries_are_restored_with_their_ids_and_only_once(
    cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "target")
    assert run(tmp_path, "restore", "--topic", "news", "--until", "1005", "--to", target) == 1
    assert f"there is no store in {target}" in capsys.readouterr().err
    assert run(tmp_path, "restore", "--topic", "news", "--until", "1005", "--to", target, "--create") == 0
    assert run(tmp_path, "restore", "--to", target) == 0
    assert "news: 104 entries restored, 16 were there" in capsys.readouterr().out
    assert run(tmp_path, "restore", "--to", target, "--json", "--topic", "news", "--as", "copy") == 0
    assert json.loads(capsys.readouterr().out) == [{"topic": "copy", "restored": 120, "there": 0}]
    expected = [(f"{ms}-{seq}".encode(), fields) for (ms, seq), fields in [*log_of(60, 1000), *log_of(60, 2000)]]
    with rlite_pubsub.Redis(target) as client:
        for topic in (b"news", ODD.topic, b"copy"):
            client.response_callbacks.pop("XRANGE", None)
            found = client.execute_command("XRANGE", topic, "-", "+")
            assert [(entry_id, list(fields)) for entry_id, fields in found] == expected


def test_what_cannot_be_restored_is_told_and_the_rest_comes(
    cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = manifest.read(cold, "news/7/_manifest.json")
    cold.delete(known.blocks[0].path)
    assert run(tmp_path, "restore", "--topic", "news") == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 60
    assert captured.err == f"rlite-pubsub: {known.blocks[0].path}: this block is not there\n"


def test_a_place_is_named_by_its_url(
    cold: Place, tmp_path: Path, s3_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["cold", "verify", "--cold", cold.url]) == 0
    there = open_place(s3_url, tmp_path)
    for file in cold.files():
        there.write(file.path, cold.read(file.path))
    assert command_line.main(["cold", "verify", "--cold", s3_url]) == 0
    assert command_line.main(["cold", "list", "--cold", s3_url]) == 0
    captured = capsys.readouterr()
    assert "240 entries" in captured.out and "secret" not in captured.out


def test_looking_makes_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none", "list") == 1
    assert "there is no cold store in" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("words", [["restore", "--as", "x"], ["restore", "--to", "y", "--as", "x"]])
def test_a_new_name_is_for_one_topic(
    cold: Place, tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *words) == 1
    assert "--as needs --topic and --to" in capsys.readouterr().err


def test_a_name_that_is_no_text_is_given_as_it_is(
    cold: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "verify", "--topic", os.fsdecode(ODD.topic)) == 0
    assert capsys.readouterr().out == "3 files with 120 entries, nothing wrong\n"


def test_without_pyarrow_the_user_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rlite_pubsub.cold.reader.is_installed", lambda: False)
    assert run(tmp_path, "list") == 1
    assert "needs the extra `cold`" in capsys.readouterr().err


def test_help_needs_no_pyarrow() -> None:
    program = (
        "import sys\nfrom rlite_pubsub import cli\n"
        "try:\n    cli.main(['cold', 'restore', '--from', '1-1', '--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit('pyarrow' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
    assert ended.returncode == 0
