"""The servers of this machine that this user may see: one folder for each user, with two files for each server.

    ID.lock     held with flock while the server lives (wakeups/liveness.py): the kernel lets go of it, however it ends
    ID.json     its card, renamed into its place once the lock is held

The folder is `rlite-pubsub` in XDG_RUNTIME_DIR, or in /run/user/UID, or else `rlite-pubsub-UID` in the folder of
temporary files. It has mode 0700, and one that somebody else owns is not used: nobody can put cards into it that are
not his. root looks into everybody's, and reads there what a card can be: a file of that user's, of a card's size.
Whoever looks into his own folder, and each server that starts, removes what the dead have left.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rlite_pubsub import permissions
from rlite_pubsub.discovery.card import ServerCard, card_of
from rlite_pubsub.wakeups.liveness import Liveness, Verdict, probe

log = logging.getLogger("rlite_pubsub")

NAME = "rlite-pubsub"
_USERS = Path("/run/user")
_MOST_BYTES = 1 << 20
"""Of a card."""


def folder_of_user() -> Path:
    """Return the folder of this user's servers."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    of_user = Path(runtime) if runtime and os.path.isabs(runtime) else _USERS / str(os.geteuid())
    return of_user / NAME if of_user.is_dir() else _temporary(os.geteuid())


def _temporary(user: int) -> Path:
    return Path(tempfile.gettempdir()) / f"{NAME}-{user}"


class PostedCard:
    """One server among those of this machine."""

    def __init__(self, folder: Path, card: ServerCard) -> None:
        """Raises OSError."""
        with suppress(FileExistsError):
            folder.mkdir(mode=permissions.OWNERS_FOLDER)
        if not _is_trusted(folder, os.geteuid()):
            raise PermissionError(f"{folder} is not this user's alone")
        list(_cards_in(folder, os.geteuid()))  # what the dead have left goes
        self._lock = Liveness.hold_new(folder, 63)
        self._card = _card_path(folder, self._lock.subscriber)
        try:
            self.tell(card)
        except BaseException:
            self.leave()
            raise

    def tell(self, card: ServerCard) -> None:
        """Update the server's card. Raises OSError."""
        temporary = self._card.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(permissions.opened(temporary, flags), "w", encoding="utf-8") as file:
            file.write(card.to_json())
        temporary.rename(self._card)

    def leave(self) -> None:
        """Remove the server's card and lock. Raises OSError."""
        if self._lock.is_held:
            self._card.unlink(missing_ok=True)
            self._card.with_suffix(".new").unlink(missing_ok=True)
            self._lock.remove()


def on_this_machine() -> list[ServerCard]:
    """Return those that live and can be seen by this user, by store and pid."""
    found = [card for folder, owner in _folders() for card in _cards_in(folder, owner)]
    return sorted(found, key=lambda card: (card.store, card.pid))


def _folders() -> Iterator[tuple[Path, int]]:
    user = os.geteuid()
    folders = {folder_of_user(): user, _temporary(user): user}
    if user == 0:
        for folder in [*_USERS.glob(f"*/{NAME}"), *Path(tempfile.gettempdir()).glob(f"{NAME}-*")]:
            owner = folder.parent.name if folder.name == NAME else folder.name.removeprefix(f"{NAME}-")
            if owner.isdigit():
                folders.setdefault(folder, int(owner))
    return ((folder, owner) for folder, owner in folders.items() if _is_trusted(folder, owner))


def _is_trusted(folder: Path, owner: int) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o077


def _cards_in(folder: Path, owner: int) -> Iterator[ServerCard]:
    for lock in folder.glob("*.lock"):
        try:
            number = int(lock.stem, 16)
        except ValueError:
            continue
        found = probe(folder, number)
        path = _card_path(folder, number)
        if found.lock is not None and owner == os.geteuid():
            _sweep(found.lock, path)
        elif found.lock is not None:
            found.lock.release()
        elif found.verdict is Verdict.ALIVE:
            card = _read(path, owner)
            if card is not None:
                yield card


def _sweep(lock: Liveness, path: Path) -> None:
    """Remove what a dead server has left."""
    try:
        path.unlink(missing_ok=True)
        path.with_suffix(".new").unlink(missing_ok=True)
        lock.remove()
    except OSError as failure:
        log.warning("Can't remove what a server that has ended left at %s: %s", path, failure)
    finally:
        lock.release()


def _read(path: Path, owner: int) -> ServerCard | None:
    """Return the card of a file; None if it is anything else: a FIFO, a link to a device, somebody else's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # it has only begun, or has just ended
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or status.st_size > _MOST_BYTES:
            return None
        return card_of(file.read(_MOST_BYTES))


def _card_path(folder: Path, number: int) -> Path:
    return folder / f"{number:016x}.json"
