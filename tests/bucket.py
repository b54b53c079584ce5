"""A bucket of a server of the S3 API, on loopback."""

from __future__ import annotations

from typing import Any

from patience import PATIENCE_S

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
"""The environment of who uses it."""


_NAME = "cold"


class Bucket:
    """In a server of the S3 API that can go away and come back with all it had."""

    def __init__(self) -> None:
        self.port = 0  # whichever is free
        self.server: Any = None
        self.begin()
        self.client().create_bucket(Bucket=_NAME)

    @property
    def url(self) -> str:
        return f"s3://{_NAME}/history?endpoint_override=http://127.0.0.1:{self.port}&region=us-east-1"

    def client(self) -> Any:
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="secret",
            config=Config(connect_timeout=PATIENCE_S, read_timeout=PATIENCE_S),
        )

    def begin(self) -> None:
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self.server.start()
        _, self.port = self.server.get_host_and_port()

    def end(self) -> None:
        self.server.stop()

    def names(self) -> list[str]:
        found = self.client().list_objects_v2(Bucket=_NAME).get("Contents", [])
        return sorted(each["Key"].removeprefix("history/") for each in found)
