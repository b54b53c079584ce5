"""SCRIPT KILL and FUNCTION KILL: a script that runs too long is ended from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import OK, Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.scripts.runner import Run
    from rlite_pubsub.engine.session import CommandSession

_NOTHING_RUNS: Final = b"NOTBUSY No scripts in execution right now."
_HAS_WRITTEN: Final = (
    b"UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script "
    b"termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)
BUSY_SCRIPT: Final = b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
BUSY_FUNCTION: Final = b"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."


def kill(session: CommandSession, *, is_eval: bool) -> Reply:
    """End the script that runs, a script or a function. Raises CommandError."""
    run: Run | None = session.engine.scripts.running
    if run is None:
        raise CommandError(_NOTHING_RUNS)
    if run.is_dirty:
        raise CommandError(_HAS_WRITTEN)
    if is_eval and not run.is_eval:
        raise CommandError(BUSY_FUNCTION)
    if not is_eval and run.is_eval:
        raise CommandError(BUSY_SCRIPT)
    run.is_killed = True
    return OK
