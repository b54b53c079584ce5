"""The destination of `rlite-pubsub cli`, from its options: which server or store, as whom, which database."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.wire import SocketWire, StoreWire, Tls, Wire
from rlite_pubsub.cli.secrets import without_password
from rlite_pubsub.cli.target import PASSWORD, folder_of, is_server, must_exist, target_of

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 6379


@dataclass(frozen=True)
class Destination:
    """Where a connection leads, and as whom."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    unix: str | None = None
    store: str | None = None
    """A folder: there is no server then."""
    tls: Tls | None = None
    user: str | None = None
    password: str | None = None
    database: int = 0
    protocol: int = 2
    creates: bool = False
    follows: bool = False
    """Whether it goes where MOVED and ASK say."""

    def connect(self) -> Wire:
        """Raises OSError and StoreError."""
        if self.store is None:
            return SocketWire(self.host, self.port, self.unix, self.tls)
        if not self.creates:
            must_exist(self.store)
        return StoreWire(self.store)

    @property
    def shown(self) -> str:
        """Its name in the prompt and in errors."""
        if self.store is not None:
            return self.store
        if self.unix is not None:
            return self.unix
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_of(arguments: argparse.Namespace) -> Destination:
    """Return the destination. Raises CommandFailed if the options make no sense."""
    password = arguments.password if arguments.password is not None else os.environ.get(PASSWORD)
    if arguments.askpass:
        from getpass import getpass

        password = getpass("Please input password: ")
    place = Destination(
        host=arguments.host,
        port=arguments.port,
        user=arguments.user,
        password=password,
        database=arguments.database,
        protocol=3 if arguments.resp3 or (arguments.form in ("json", "quoted-json") and not arguments.resp2) else 2,
        creates=arguments.create,
        follows=arguments.follows,
    )
    for target in (arguments.socket, arguments.uri):
        if target is not None:
            place = _at(place, target_of(target))
    if arguments.tls or place.tls is not None:
        tls = Tls(
            authorities=arguments.cacert,
            folder_of_authorities=arguments.cacertdir,
            certificate=arguments.cert,
            key=arguments.key,
            name=arguments.sni,
            is_believed=arguments.insecure,
            ciphers=arguments.tls_ciphers,
        )
        place = replace(place, tls=tls)
    return place


def _at(place: Destination, target: str) -> Destination:
    """Return the same, where a URL or a folder says."""
    if not is_server(target):
        return replace(place, store=folder_of(target))
    url = urlsplit(target)
    try:
        port = url.port or DEFAULT_PORT
        path = url.path.strip("/")
        database = int(path) if path and url.scheme != "unix" else place.database
    except ValueError as failure:
        raise CommandFailed(f"{without_password(target)}: {failure}") from failure
    if url.scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
        raise CommandFailed(f"{without_password(target)} is not a redis://, rediss:// or unix:// URL")
    return replace(
        place,
        host=url.hostname or DEFAULT_HOST,
        port=port,
        unix=url.path if url.scheme == "unix" else None,
        tls=Tls() if url.scheme in ("rediss", "valkeys") else None,
        user=unquote(url.username) if url.username else place.user,
        password=unquote(url.password) if url.password else place.password,
        database=database,
    )
