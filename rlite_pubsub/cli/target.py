"""The target of a command: a store's folder, or a server by its address.

    ./store, /var/lib/rlite              a folder; rlite:///var/lib/rlite?db=1 is one, too
    localhost, 127.0.0.1:6379, [::1]     a server (so a folder of such a name is ./localhost)
    redis://…, rediss://…, unix://…      a server
    /run/redis.sock                      a server, where there is a socket of that name

Promise: no store is made, unless `--create` says so.
"""

from __future__ import annotations

import argparse
import errno
import os
import pwd
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.secrets import without_password

DEFAULT = "./store"
PASSWORD = "REDISCLI_AUTH"
"""The environment's variable, as redis-cli has it: an argument can be seen by everybody on the machine."""
_ADDRESS = re.compile(r"localhost|\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:.]+\]|[^/\\:]+(?=:\d+$)")


def add_target(parser: argparse.ArgumentParser, *, may_create: bool = False) -> None:
    """`-s`, with its more telling names, and `--create` where a store may be made."""
    parser.add_argument(
        "-s",
        "--store",
        "--dir",
        "--url",
        dest="store",
        metavar="STORE",
        type=target_of,
        default=DEFAULT,
        help=f"a store's folder, or a server: HOST:PORT or a redis:// URL, whose password may come from {PASSWORD} "
        f"(default: {DEFAULT})",
    )
    if may_create:
        parser.add_argument("--create", action="store_true", help="make the store if the folder has none")


def target_of(word: str) -> str:
    """Return a folder, or a URL."""
    found = _ADDRESS.match(word)
    if found is not None and re.fullmatch(r"(:\d+)?", word[found.end() :]):
        return f"redis://{word}"
    return f"unix://{os.path.abspath(word)}" if "://" not in word and _is_socket(word) else word


def _is_socket(word: str) -> bool:
    try:
        return Path(word).is_socket()
    except OSError:
        return False  # it may not be looked at: whoever opens it says why


def is_server(target: str) -> bool:
    """Return whether it is a server's URL, not a folder."""
    return "://" in target and not target.startswith("rlite://")


def folder_of(target: str) -> str:
    """Return the folder that a target names, if it is no server."""
    if "://" not in target:
        return target
    from rlite_pubsub.embedded.options import options_of

    return str(options_of(target)["path"])


def client_of(target: str, *, creates: bool = False, tries_again: bool = True) -> Any:
    """A client. One that does not try again leaves that to its user. Raises FileNotFoundError where there is no store
    and none is to be made."""
    if is_server(target):
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        from rlite_pubsub.embedded.bounded_parsers import BoundedParser

        options: dict[str, Any] = {"parser_class": BoundedParser}
        if not tries_again:
            options["retry"] = Retry(NoBackoff(), 0)
        try:
            return redis.from_url(target, password=os.environ.get(PASSWORD), **options)
        except ValueError as failure:
            raise CommandFailed(f"{without_password(target)}: {failure}") from failure
    import rlite_pubsub

    if not creates:
        must_exist(folder_of(target))
    return rlite_pubsub.from_url(target) if "://" in target else rlite_pubsub.Redis(target)


def must_exist(folder: str) -> None:
    """Looking must not make a store. Raises FileNotFoundError and CommandFailed."""
    try:
        is_there = (Path(folder) / "live.mdb").exists()
    except PermissionError as failure:
        raise CommandFailed(f"{folder} is not open to {_user()}: ask as its owner, {_owner_of(folder)}") from failure
    if is_there:
        return
    if (Path(folder) / "backup.json").exists():
        how = f"`rlite-pubsub restore {folder} STORE` makes one of it"
        raise CommandFailed(f"{folder} is a backup, and no store: {how}")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise CommandFailed(f"{folder} is a file: a store is a folder")
    raise FileNotFoundError(f"there is no store in {folder}")


def _user() -> str:
    return _name_of(os.geteuid())


def _owner_of(folder: str) -> str:
    """Return whose folder this is, or the nearest one above it that can be seen."""
    for path in (Path(folder), *Path(os.path.abspath(folder)).parents):
        with suppress(OSError):
            return _name_of(path.stat().st_uid)
    return "root"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def must_be_readable(path: str) -> None:
    """Raises OSError where nobody can read it, and CommandFailed where it is neither a file, a folder nor a pipe, which
    the user has named: a device never ends."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode)):
        raise CommandFailed(f"{path} is neither a file, a pipe nor a folder")
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
