"""INFO's lines on backups, in its section Persistence, and the warnings about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.storage.commons.backup_state import BackupState
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine

LATE_MS = 10_000
"""Seconds of lag before a warning, unless the interval is as long."""


def backup(engine: Engine) -> Iterator[tuple[str, object]]:
    """Yield nothing if the store was never backed up continuously, and has no backup target."""
    backups = engine.backups
    state = backups.state
    if state is None and not backups.are_wanted:
        return
    state = state or BackupState()
    yield "backup_target", state.target
    yield "backup_pid", state.pid
    yield "backup_interval_ms", int(state.interval_s * 1000)
    yield "backup_retain", state.retain_s
    yield "backup_lag_ms", _lag_ms(engine, state)
    yield "backup_as_of_ms", state.as_of_ms
    yield "backup_last_piece", state.piece
    yield "backup_last_piece_ms", state.piece_ms
    yield "backup_last_snapshot_ms", state.snapshot_ms
    yield "backup_snapshot_in_progress", int(state.is_snapshotting)
    yield "backup_pieces", state.pieces
    yield "backup_snapshots", state.snapshots
    yield "backup_bytes", state.bytes
    yield "backup_waiting_bytes", state.waiting_bytes
    yield "backup_failures", state.failures
    yield "backup_last_error", " ".join(state.error.split())


def saving(engine: Engine) -> dict[str, object]:
    """Return what Redis says of its last save; with a backup target, of the last backup."""
    backups = engine.backups
    if not backups.are_wanted:
        return {"rdb_last_save_time": int(engine.clock())}
    state = backups.state or BackupState()
    return {
        "rdb_bgsave_in_progress": int(backups.is_under_way(state)),
        "rdb_last_save_time": state.as_of_ms // 1000,
        "rdb_last_bgsave_status": "err" if state.error else "ok",
        "rdb_saves": state.snapshots,
    }


def warnings(engine: Engine) -> list[str]:
    """Return warnings for the operator of the server."""
    if not engine.backups.are_wanted:
        return []
    state = engine.backups.state or BackupState()
    why = f": {state.error}" if state.error else ""
    lag_ms = _lag_ms(engine, state)
    if lag_ms < 0:
        return [f"there is no backup yet{why}"]
    is_late = lag_ms > LATE_MS + 2000 * state.interval_s
    return [f"the backup is {lag_ms // 1000} seconds behind{why}"] if is_late else []


def _lag_ms(engine: Engine, state: BackupState) -> int:
    try:
        return engine.backups.lag_ms(state)
    except StoreError:
        return -1
