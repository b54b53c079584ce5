"""The place that an address means: a folder, or a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rlite_pubsub.cold.local_place import LocalPlace

if TYPE_CHECKING:
    from rlite_pubsub.cold.place import Place


def open_place(url: str, base: str | Path) -> Place:
    """A folder (a relative one is in `base`; without any it is `cold` there), a file:// URL, or a URL that pyarrow.fs
    or fsspec knows, as s3://bucket/prefix?region=…&endpoint_override=…&access_key=…&secret_key=…

    Nothing is asked of it yet, so nothing can fail. Arrow is imported for a bucket alone."""
    if "://" not in url:
        return LocalPlace(Path(base).absolute() / (url or "cold"))
    if url.startswith("file://"):
        return LocalPlace(Path(unquote(urlsplit(url).path)))
    from rlite_pubsub.cold.remote_place import RemotePlace

    return RemotePlace(url)
