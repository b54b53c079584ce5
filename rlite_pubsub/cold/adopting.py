"""Makes a block of another store one of this store's.

Promise: only the file's footer changes: it names this store, its topic and the new path. The row groups stay as they
are, byte for byte, under the digests with which they were sealed.
"""

from __future__ import annotations

from hashlib import sha256

from rlite_pubsub.cold import footer
from rlite_pubsub.cold.errors import BlockDamaged
from rlite_pubsub.cold.footer import KEY, SEAL, Footer
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

_END_BYTES = 8
"""After the metadata: their length, and Parquet's mark."""


def adopted(file: bytes, said: BlockInfo, origin: Origin) -> tuple[bytes, BlockInfo]:
    """Return the block that `said` describes as a block of this topic, at `said.path`: its file, and what is known of
    it. Raises BlockDamaged if it is not what was sealed, ForeignBlock if it is no block."""
    path = said.path
    if (len(file), sha256(file).digest()) != (said.file_bytes, said.sha256):
        raise BlockDamaged(path, "what has come is not what was sealed")
    before = footer.parsed(file, path)
    known = before.info(said.file_bytes, said.sha256)
    if (known.first, known.last, known.count, known.wire_bytes) != (said.first, said.last, said.count, said.wire_bytes):
        raise BlockDamaged(path, "it is not the block that it was said to be")
    after = before._replace(origin=origin, path=path)
    end = len(file) - _END_BYTES
    length = int.from_bytes(file[end : end + 4], "little")
    metadata = _with(file[end - length : end], before, after)
    seal = SEAL + before.body_sha256 + sha256(metadata).digest()
    behind = len(metadata).to_bytes(4, "little") + file[end + 4 :]
    made = b"".join((memoryview(file)[: len(file) - before.size], seal, metadata, behind))
    again = footer.parsed(made, path)
    if (again.origin, again.path, again.groups, again.extents) != (origin, path, before.groups, before.extents):
        raise BlockDamaged(path, "its footer can't be rewritten")
    return made, again.info(len(made), sha256(made).digest())


def _with(metadata: bytes, before: Footer, after: Footer) -> bytes:
    """Return Parquet's metadata with another text under our key. In Thrift's compact form a string follows its length,
    and nothing else depends on its position."""
    old = before.parquet.metadata[KEY.encode()]
    new = after.words()[KEY].encode()
    there = _counted(old)
    if metadata.count(there) != 1:
        raise BlockDamaged(after.path, "its footer can't be rewritten")
    return metadata.replace(there, _counted(new))


def _counted(text: bytes) -> bytes:
    """Return the text after its length, seven bits a byte, the lowest first."""
    length, count = bytearray(), len(text)
    while count > 0x7F:
        length.append(count & 0x7F | 0x80)
        count >>= 7
    length.append(count)
    return bytes(length) + text
