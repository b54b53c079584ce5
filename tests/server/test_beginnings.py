"""What a server says as it begins: where its port is taken, and where the folder has keys that it does not serve."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S
from ports import free_port
from server_process import Serve

COMMAND = [sys.executable, "-m", "rlite_pubsub"]


def ended(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A server that can't begin."""
    return subprocess.run([*COMMAND, "serve", *words], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("directive", ["port", "http-port"])
def test_port_in_use_is_said_with_who_has_it_and_what_to_do(tmp_path: Path, directive: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        ports = {"port": free_port()} | {directive: taken}
        run = ended(*[word for name, port in ports.items() for word in (f"--{name}", str(port))], cwd=tmp_path)
    assert run.returncode == 1
    said = run.stdout + run.stderr
    assert str(taken) in said and "Address already in use" in said and f"--{directive}" in said
    assert f"process {os.getpid()} (" in said and "Traceback" not in said


@pytest.mark.parametrize(("name", "is_folder"), [("dump.rdb", False), ("appendonlydir", True)])
@pytest.mark.parametrize("is_beside", [False, True])
def test_store_that_begins_empty_beside_the_keys_of_a_redis_says_so(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_folder: bool, is_beside: bool
) -> None:
    folder = tmp_path / "store"
    place = (tmp_path if is_beside else folder) / name
    place.parent.mkdir(exist_ok=True)
    if is_folder:
        place.mkdir()
    else:
        place.write_bytes(b"REDIS0011")
    monkeypatch.chdir(tmp_path)
    server = serve(store_folder=folder)
    assert f"rlite-pubsub import --merge {place} {folder}" in server.log()
    server.end()
    again = serve(store_folder=folder)
    assert again.log().count("rlite-pubsub import") == 1  # it has data now, which may have been imported


def test_import_as_it_is_said_brings_the_keys_of_a_redis_in(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = serve()
    source.connect().do("SET", "k", "v")
    source.end()
    export = [*COMMAND, "export", str(source.store_folder), str(tmp_path / "dump.rdb")]
    subprocess.run(export, check=True, capture_output=True, timeout=PATIENCE_S)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "fresh"
    server = serve(store_folder=folder)
    server.end()
    (words,) = [line.partition("rlite-pubsub import ")[2] for line in server.log().splitlines() if "--merge" in line]
    subprocess.run([*COMMAND, "import", *words.split()], check=True, capture_output=True, timeout=PATIENCE_S)
    assert serve(store_folder=folder).connect().do("GET", "k") == b"v"


def test_store_whose_data_are_gone_says_so(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    server = serve(store_folder=folder)
    assert server.connect().do("SET", "k", "v") == b"OK"
    server.end()
    assert "data.mdb" not in server.log()
    (folder / "data.mdb").unlink()
    again = serve(store_folder=folder)
    assert "no data.mdb" in again.log() and "restore" in again.log()
    again.end()
    shutil.rmtree(folder)
    assert serve(store_folder=folder).log().count("no data.mdb") == 1
