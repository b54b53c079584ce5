"""A cold store in a bucket, or wherever else pyarrow.fs or fsspec reaches.

An object store shows an object when its last byte is there, so there one put is atomic. Elsewhere a file is written
under another name and moved.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from posixpath import basename, dirname
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from pyarrow import fs

from rlite_pubsub.cold.errors import PlaceFailed
from rlite_pubsub.cold.place import Found, Place, check_whole, checked, is_leftover
from rlite_pubsub.storage.failpoint import failpoint

_OBJECT_STORES = frozenset(("s3", "gcs", "abfs"))
_SECRETS = frozenset(("access_key", "secret_key", "session_token"))
_S3_OPTIONS = _SECRETS | {"region", "endpoint_override", "scheme", "anonymous", "role_arn"}
_CONNECT_S = 10
_REQUEST_S = 60
_ATTEMPTS = 4


class RemotePlace(Place):
    """S3's credentials are those of its URL, or those that the environment and AWS's own files have."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._lock = threading.Lock()
        self._opened: tuple[int, Any, str] | None = None

    def __reduce__(self) -> tuple[object, tuple[object]]:
        return RemotePlace, (self.url,)

    @property
    def shown(self) -> str:
        parts = urlsplit(self.url)
        query = [(word, value) for word, value in parse_qsl(parts.query) if word not in _SECRETS]
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query=urlencode(query, safe=":/")).geturl()

    def _filesystem(self) -> tuple[Any, str]:
        """(file system, path of the place in it): of this process, for none of them survives a fork."""
        with self._lock:
            if self._opened is None or self._opened[0] != os.getpid():
                with self._failing(""):
                    self._opened = os.getpid(), *_opened(self.url)
            return self._opened[1:]

    def write(self, path: str, data: bytes | memoryview) -> None:
        system, root = self._filesystem()
        target = f"{root}/{checked(path)}"
        is_put_at_once = system.type_name in _OBJECT_STORES
        to = target if is_put_at_once else f"{dirname(target)}/.{basename(target)}.{secrets.token_hex(4)}.part"
        with self._failing(path):
            if not is_put_at_once:
                system.create_dir(dirname(target), recursive=True)
            with system.open_output_stream(to) as stream:
                stream.write(data)
                failpoint("cold-object-written")
            if not is_put_at_once:
                system.move(to, target)
        if self.size(path) != len(data):
            raise PlaceFailed(path, f"there are {self.size(path)} bytes, and {len(data)} were written")

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        system, root = self._filesystem()
        with self._failing(path), system.open_input_file(f"{root}/{checked(path)}") as file:
            size = file.size()
            end = check_whole(path, size) if length is None else min(size, start + length)
            return bytes(file.read_at(end - start, start)) if end > start else b""

    def size(self, path: str) -> int:
        system, root = self._filesystem()
        with self._failing(path):
            info = system.get_file_info(f"{root}/{checked(path)}")
        if info.type != fs.FileType.File:
            raise FileNotFoundError(path)
        return int(info.size)

    def files(self, folder: str = "") -> Iterator[Found]:
        for path, info in self._infos(folder):
            if not info.base_name.startswith("."):
                yield Found(path, int(info.size), info.mtime_ns / 1e9 if info.mtime_ns else None)

    def _infos(self, folder: str) -> list[tuple[str, Any]]:
        system, root = self._filesystem()
        where = f"{root}/{checked(folder)}" if folder else root
        with self._failing(folder):
            found = system.get_file_info(fs.FileSelector(where, recursive=True, allow_not_found=True))
        start = len(root.strip("/")) + 1
        files = [each for each in found if each.type == fs.FileType.File]
        return sorted(((each.path.strip("/")[start:], each) for each in files), key=lambda one: one[0])

    def delete(self, path: str) -> None:
        system, root = self._filesystem()
        with self._failing(path):
            try:
                system.delete_file(f"{root}/{checked(path)}")
            except FileNotFoundError:
                return

    def sweep(self, now_s: float | None = None) -> int:
        count = 0
        for path, info in self._infos(""):
            if is_leftover(info.base_name, (info.mtime_ns or 0) / 1e9, now_s):
                self.delete(path)
                count += 1
        return count

    @contextmanager
    def _failing(self, path: str) -> Iterator[None]:
        """Raise the bucket's refusals as our errors."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, ValueError, NotImplementedError, ImportError) as failure:
            where = self.shown if not path else f"{self.shown.partition('?')[0].rstrip('/')}/{path}"
            raise PlaceFailed(where, " ".join(str(failure).split())) from failure


def _opened(url: str) -> tuple[Any, str]:
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return _s3(parts), _bucket(parts)
    try:
        system, path = fs.FileSystem.from_uri(url)
    except (ValueError, NotImplementedError):  # unknown to pyarrow
        import fsspec

        known, path = fsspec.core.url_to_fs(url)
        system = fs.PyFileSystem(fs.FSSpecHandler(known))
    return system, path.rstrip("/")


def _bucket(parts: SplitResult) -> str:
    """Bucket and prefix."""
    return (parts.netloc.rpartition("@")[2] + unquote(parts.path)).rstrip("/")


def _s3(parts: SplitResult) -> Any:
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    unknown = options.keys() - _S3_OPTIONS
    if unknown:
        raise ValueError(f"unknown in an s3:// URL: {', '.join(sorted(unknown))}")
    if parts.username:
        options.setdefault("access_key", unquote(parts.username))
        options.setdefault("secret_key", unquote(parts.password or ""))
    if "anonymous" in options:
        options["anonymous"] = options["anonymous"] in ("1", "true", "yes")
    endpoint = options.get("endpoint_override", "")
    if "://" in endpoint:
        options["scheme"], _, options["endpoint_override"] = endpoint.partition("://")
    return fs.S3FileSystem(
        connect_timeout=_CONNECT_S,
        request_timeout=_REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        **options,
    )
