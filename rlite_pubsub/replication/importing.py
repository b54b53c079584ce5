"""Keys into a store's folder: out of an RDB file, append-only files, or a running Redis.

What Redis would load is loaded as Redis does: a base, and then the requests that came behind it, executed in order, but
only those that change keys and libraries of functions: a file may be anybody's, and Redis's own have no others. What is
not executed is counted by name. A running Redis is asked for all it has as a replica asks (PSYNC), and left when it has
sent that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

from redis.exceptions import OutOfMemoryError, ResponseError

from rlite_pubsub.embedded.client import Redis
from rlite_pubsub.embedded.host import Host
from rlite_pubsub.engine.functions.library import FunctionError
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.protocol.appended import Broken, Truncated
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.replication.appended_file import NoManifest, begins_with_rdb, begins_with_request, parts_of
from rlite_pubsub.replication.loading import Loading
from rlite_pubsub.replication.master_link import MasterLink, MasterRefused, address_of
from rlite_pubsub.replication.units import read_units
from rlite_pubsub.storage.errors import StoreError

_AT_ONCE_REQUESTS = 1000
_AT_ONCE_BYTES = 4 << 20
_TIMEOUT_S = 60.0
_MOST_WARNINGS = 10
_WAITS = frozenset(("blocking",))
_GOES_OUT = frozenset((b"migrate",))
_BESIDE = frozenset((b"select", b"multi", b"exec", b"eval", b"evalsha", b"fcall"))
"""What stands beside the commands that change keys: Redis before 7 wrote scripts into its files, and what these may
call is checked as always."""
_UNWRITTEN = "MISCONF"
"""The store could not be written: it has only what came before."""


class ImportFailed(Exception):
    """The source can't be read, or what it has can't be kept; the text says why."""


@dataclass
class Imported:
    """What was imported."""

    keys: int = 0
    libraries: int = 0
    over: int = 0
    """Keys whose time is over, which are left out."""
    of_modules: int = 0
    """Keys of modules, which are left out."""
    requests: int = 0
    """Of append-only files, those that were executed."""
    not_executed: Counter[str] = field(default_factory=Counter)
    """Of append-only files: commands that change no keys."""
    warnings: list[str] = field(default_factory=list)


def import_into(folder: Path, source: str) -> Imported:
    """Put what the source has into the store of this folder, which is made if necessary. Raises ImportFailed,
    StoreUnavailable."""
    with closing(Host.open(folder)) as host:
        session = host.begin_session()
        loading = Loading(session.engine, host.turn)
        imported = Imported()
        try:
            if "://" in source:
                _load_from_master(loading, source)
            else:
                _load_files(folder, loading, imported, Path(source))
        except FunctionError as failure:
            raise ImportFailed(failure.text.decode(errors="backslashreplace")) from failure
        except UnicodeDecodeError as failure:
            raise ImportFailed("its manifest is no text") from failure
        except (Malformed, MasterRefused, NoManifest, Broken, StoreError, ValueError, OSError) as failure:
            why = failure.strerror if isinstance(failure, OSError) and failure.filename is None else None
            raise ImportFailed(why or str(failure) or type(failure).__name__) from failure
        finally:
            host.end_session(session)
        imported.keys, imported.libraries = loading.keys, loading.libraries
        imported.over, imported.of_modules = loading.over, loading.of_modules
        return imported


def _load_from_master(loading: Loading, url: str) -> None:
    address = address_of(url)
    link = MasterLink(address, _TIMEOUT_S)
    with closing(link):
        link.introduce(address, port=0)
        link.follow(None)
        link.begin_file()
        link.end_file(loading.load(link.incoming.read))


def _load_files(folder: Path, loading: Loading, imported: Imported, path: Path) -> None:
    with closing(Redis(folder)) as client:
        for part in parts_of(path):
            with open(part.path, "rb") as file:
                if begins_with_rdb(file):
                    loading.load(file.read)
                elif not begins_with_request(file):
                    raise ImportFailed("it is neither an RDB file nor an append-only file of Redis's")
                try:
                    for batch in _batches(file):
                        wanted = [words for words in batch if _changes_keys(words, imported)]
                        imported.requests += len(wanted)
                        _execute(client, wanted, imported)
                except Truncated:
                    if not part.is_last:
                        raise ImportFailed(f"{part.path}: ends within a request") from None
                    imported.warnings.append(f"{part.path}: ends within a request, which is left out")


def _batches(file: BufferedReader) -> Iterator[list[list[bytes]]]:
    """Requests, about as many at a time as make a good commit; transactions are whole. Raises Truncated after the last
    whole one, and Broken."""
    batch: list[list[bytes]] = []
    size = 0
    try:
        for requests, unit_bytes in read_units(file):
            batch += requests
            size += unit_bytes
            if len(batch) >= _AT_ONCE_REQUESTS or size >= _AT_ONCE_BYTES:
                yield batch
                batch, size = [], 0
    except Truncated:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _changes_keys(words: list[bytes], imported: Imported) -> bool:
    """Return whether a request may be executed; if not, it is noted. What nobody knows may: it is refused, and that is
    said."""
    try:
        command = TABLE.resolve(list(words))
    except CommandError:
        return True
    is_key_command = "write" in command.flags and not command.flags & _WAITS and command.name not in _GOES_OUT
    if is_key_command or command.name in _BESIDE:
        return True
    imported.not_executed[command.name.decode().replace("|", " ").upper()] += 1
    return False


def _execute(client: Redis, batch: list[list[bytes]], imported: Imported) -> None:
    """As one turn, on one connection: SELECT stays from one batch to the next."""
    if not batch:
        return
    pool: Any = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command([batch])
        for words in batch:
            try:
                connection.read_response()
            except ResponseError as refusal:
                if str(refusal).startswith(_UNWRITTEN) or isinstance(refusal, OutOfMemoryError):
                    raise ImportFailed(str(refusal)) from refusal
                if len(imported.warnings) < _MOST_WARNINGS:
                    name = words[0].decode(errors="backslashreplace")
                    imported.warnings.append(f"{name} was refused: {refusal}")
    finally:
        pool.release(connection)
