"""Places for the cold store: a folder, and a bucket of a real S3 server on loopback."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cold_server import Sealer, Twins, gated
from server_process import ServerProcess

from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return open_place("", tmp_path)


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """moto's server, and a bucket `cold` in it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def s3_url(s3_endpoint: str) -> str:
    """A place in a bucket of its own, with its credentials."""
    import boto3

    bucket = f"cold-{uuid.uuid4().hex[:12]}"
    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket=bucket)
    return f"s3://{bucket}/history?endpoint_override={s3_endpoint}&region=us-east-1&access_key=test&secret_key=secret"


@pytest.fixture(params=["folder", "s3", "fsspec"])
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of place there is."""
    if request.param == "folder":
        return open_place("", tmp_path)
    if request.param == "s3":
        return open_place(request.getfixturevalue("s3_url"), tmp_path)
    return open_place(f"memory://{os.getpid()}-{uuid.uuid4().hex}/cold", tmp_path)


@pytest.fixture
def seal() -> Iterator[Callable[..., Sealer]]:
    """Start a sealing process, as `Sealer`."""
    sealers: list[Sealer] = []

    def start(*words: Any, **options: Any) -> Sealer:
        sealers.append(Sealer(*words, **options))
        return sealers[-1]

    yield start
    for sealer in sealers:
        sealer.clean_up()


@pytest.fixture(scope="module")
def two_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Neither of which seals by itself."""
    folder = tmp_path_factory.mktemp("cold")
    cold, plain = ServerProcess(folder, environment=gated(folder)), ServerProcess(tmp_path_factory.mktemp("plain"))
    yield cold, plain
    cold.clean_up()
    plain.clean_up()


@pytest.fixture
def twins(two_servers: tuple[ServerProcess, ServerProcess]) -> Iterator[Twins]:
    """Two empty servers."""
    found = Twins(*two_servers)
    found.do("FLUSHALL")
    found.forget_notes()
    yield found
    found.gate.unlink(missing_ok=True)
    found.close()
