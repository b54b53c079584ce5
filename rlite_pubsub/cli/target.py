"""What a subcommand works on: a store's folder, or a server by its URL."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

from rlite_pubsub.cli.ending import CommandFailed

DEFAULT = "./store"
PASSWORD = "REDISCLI_AUTH"
"""The environment's variable, as redis-cli has it: an argument can be seen by everybody on the machine."""


def add_target(parser: argparse.ArgumentParser, *, url: bool = True) -> None:
    """`-s`, and its two more telling names."""
    what = f"a store folder or a redis:// URL (its password may come from {PASSWORD})" if url else "a store folder"
    names = ("-s", "--store", "--dir", "--url") if url else ("-s", "--store", "--dir")
    parser.add_argument(*names, dest="store", metavar="STORE", default=DEFAULT, help=f"{what} (default: {DEFAULT})")


def is_server(target: str) -> bool:
    """Whether it is a server's URL, not a folder."""
    return "://" in target and not target.startswith("rlite://")


def folder_of(target: str) -> str:
    """Of a target that is no server."""
    if "://" not in target:
        return target
    from rlite_pubsub.embedded.options import options_of

    return str(options_of(target)["path"])


def client_of(target: str, *, tries_again: bool = True) -> Any:
    """A client; a folder without a store gets one. One that does not try again leaves that to its user."""
    if is_server(target):
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        options: dict[str, Any] = {} if tries_again else {"retry": Retry(NoBackoff(), 0)}
        try:
            return redis.from_url(target, password=os.environ.get(PASSWORD), **options)
        except ValueError as failure:
            raise CommandFailed(f"{without_password(target)}: {failure}") from failure
    import rlite_pubsub

    return rlite_pubsub.from_url(target) if "://" in target else rlite_pubsub.Redis(target)


def without_password(url: str) -> str:
    """A URL that may be shown."""
    return re.sub(r"(?<=://)([^/@]*):[^/]*@", r"\1:***@", url)


def passwords_in(words: list[str]) -> list[bytes]:
    """Those of the URLs among a command's arguments."""
    found = (re.search(r"://[^/@]*:([^/]*)@", word) for word in words)
    return [os.fsencode(match[1]) for match in found if match is not None]


def must_exist(folder: str) -> None:
    """Looking must not make a store. Raises FileNotFoundError."""
    if not (Path(folder) / "live.mdb").exists():
        raise FileNotFoundError(f"there is no store in {folder}")
