"""Servers as processes, killed when the test ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_process import Serve, ServerProcess


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server, `serve("--maxclients", "10")`; further ones in the same folder share its store and log."""
    servers: list[ServerProcess] = []

    def start(*flags: str, folder: Path = tmp_path, **options: Any) -> ServerProcess:
        servers.append(ServerProcess(folder, *flags, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.clean_up()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    if mounted:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder]).returncode == 0
    if not mounted:
        pytest.skip("a tiny disk can be mounted by root only")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve()
