"""Bringing home what a killed server has left in its journal: what is whole from its beginning on. What is damaged is
said, and kept beside it (`data.journal.damaged`).

Law 9: a process that is alive commits by itself within a moment, once it has noticed that it is no longer alone
(shared_commit.py). One that is stopped in the middle is named in the error.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.errors import StoreHeld, StoreUnwritable
from rlite_pubsub.storage.journal import journal
from rlite_pubsub.storage.locks.writer_lock import PATIENCE_S, said

if TYPE_CHECKING:
    from pathlib import Path

    from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment

log: Final = logging.getLogger("rlite_pubsub")
_PAUSE_S: Final = 0.002


def _keep(path: Path, owed: journal.Owed) -> None:
    log.error(
        "%s is damaged: of the turns that were acknowledged before a kill, %d are whole, and at least %d behind them "
        "are lost. The file as it was is %s.",
        journal.journal_path(path),
        len(owed.turns),
        owed.lost,
        journal.damaged_path(path),
    )
    try:
        journal.keep_damaged(path)
    except OSError as error:
        raise StoreUnwritable(journal.damaged_path(path), os.strerror(error.errno or 0)) from error


def _say_torn(path: Path, owed: journal.Owed) -> None:
    if owed.is_torn:
        log.warning(
            "%s: the turn behind the last whole one is not whole: a kill has cut it off before it was acknowledged, or "
            "the file is damaged there.",
            path,
        )


def recover(environment: LmdbEnvironment, patience_s: float = PATIENCE_S) -> int:
    """Bring home what is in the journal of an environment that was just opened; return how many turns that was. Raises
    StoreError."""
    path, boot, began = journal.journal_path(environment.path), boot_id(), monotonic()
    while True:
        try:
            owed = journal.owed(path, boot, environment.last_commit())
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
        if owed is None:
            return 0
        writer = environment.writer
        thread = writer.writing_thread() if writer is not None else 0
        if not thread:
            if owed.lost:
                _keep(environment.path, owed)
            base = environment.last_commit()
            done = environment.write(partial(journal.bring_home, owed), freeing=True)
            if done:
                log.info("%s: brought home %d turns that were acknowledged before a kill", environment.path, done)
            if done or (base == owed.base and environment.last_commit() <= base + 1):
                _say_torn(path, owed)
                return done
        elif monotonic() - began >= patience_s:
            raise StoreHeld(environment.path, partial(said, thread, environment.path, monotonic() - began))
        sleep(_PAUSE_S)
