"""SCRIPT KILL and FUNCTION KILL: a script that runs too long is ended from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.scripts.runner import ScriptRun
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
    run: ScriptRun | None = session.engine.scripts.running
    if run is None:
        raise CommandError(_NOTHING_RUNS)
    if run.is_dirty:
        raise CommandError(_HAS_WRITTEN)
    if is_eval and not run.is_eval:
        raise CommandError(BUSY_FUNCTION)
    if not is_eval and run.is_eval:
        raise CommandError(BUSY_SCRIPT)
    run.kill()
    return OK


class Ended(StoreError):
    """The process ends while a script runs. What its turn has written is undone."""

    def __init__(self) -> None:
        super().__init__("the server is shut down")


def end(session: CommandSession) -> bool:
    """End the script that runs, whatever it has done, for this session ends the process. False if none runs."""
    run: ScriptRun | None = session.engine.scripts.running
    if run is None:
        return False
    run.kill(Ended())
    return True
