"""The paths of a topic's files in a cold store.

    NAME/NUMBER/FIRST_LAST.parquet      a block: NUMBER is the topic's, FIRST and LAST are ids, ms-seq
    NAME/NUMBER/_manifest.json          its manifest

NAME is the topic's, in which every byte but letters, digits, `-`, `_` and `.` stands as %XX, and so does a `_` or `.`
at its beginning, which would hide the folder from Spark. A name that would be longer than 150 is cut, and its digest
put behind a `~`; one without any byte is `~`. NUMBER tells a topic from one of the same name that was before it. What
begins with `_` Spark does not read as data.
"""

from __future__ import annotations

from hashlib import blake2b

from rlite_pubsub.storage.topics.entry_ids import Id

SUFFIX = ".parquet"
MANIFEST = "_manifest.json"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_LONGEST = 150
_CUT = "~"
"""Which stands nowhere else, for in a name it would be written as %7E."""
_DIGEST_BYTES = 16


def folder_name(topic: bytes) -> str:
    """Return a topic's name as a folder's."""
    written = "".join(
        chr(byte) if byte in _PLAIN and (place or byte not in b"._") else f"%{byte:02X}"
        for place, byte in enumerate(topic)
    )
    if not written:
        return _CUT
    if len(written) <= _LONGEST:
        return written
    digest = blake2b(topic, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{written[: _LONGEST - len(digest) - 1]}{_CUT}{digest}"


def folder_of(topic: bytes, number: int) -> str:
    return f"{folder_name(topic)}/{number}"


def manifest_of(topic: bytes, number: int) -> str:
    return f"{folder_of(topic, number)}/{MANIFEST}"


def block_of(topic: bytes, number: int, first: Id, last: Id) -> str:
    """Return a block's path."""
    return f"{folder_of(topic, number)}/{first[0]}-{first[1]}_{last[0]}-{last[1]}{SUFFIX}"
