"""A script that runs for long: it is asked now and then whether it may go on, others are served meanwhile, and it may
be ended from outside (SCRIPT KILL, FUNCTION KILL)."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Final

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.scripts.run import ScriptRun
    from rlite_pubsub.engine.session import CommandSession

log: Final = logging.getLogger("rlite_pubsub")

_NOTHING_RUNS: Final = b"NOTBUSY No scripts in execution right now."
_HAS_WRITTEN: Final = (
    b"UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script "
    b"termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)
BUSY_SCRIPT: Final = b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
BUSY_FUNCTION: Final = b"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."


def is_over(engine: Engine, run: ScriptRun) -> bool:
    """Return whether the script must end now. One that has been running for too long is busy: other clients get BUSY
    meanwhile, or may end it."""
    try:
        if engine.scripts.refusal is None:
            threshold_ms = engine.settings["busy-reply-threshold"]
            if not threshold_ms or (monotonic() - run.since) * 1000 < threshold_ms:
                return run.is_killed
            _announce(engine, run)
        _serve_others(engine, run)
    except BaseException as failure:  # it must not pass through Lua
        run.reason = failure
        return True
    return run.is_killed


def _announce(engine: Engine, run: ScriptRun) -> None:
    if engine.serve_beside is None:
        return
    log.warning(
        "Slow script detected: still in execution after %d milliseconds. You can try killing the script using the "
        "%s command. Script name is: %s.",
        (monotonic() - run.since) * 1000,
        "SCRIPT KILL" if run.is_eval else "FUNCTION KILL",
        run.name.decode("latin-1"),
    )
    engine.scripts.refusal = BUSY_SCRIPT if run.is_eval else BUSY_FUNCTION
    engine.look_out()


def _serve_others(engine: Engine, run: ScriptRun) -> None:
    """Law 5: replies that acknowledge a change, or may reveal one, wait for the end of this turn, and so do those after
    them."""
    serve_beside = engine.serve_beside
    if serve_beside is None:
        return
    hub = engine.hub
    hub.close_run()
    executing, unacknowledged = engine.tracked.executing, len(engine.unacknowledged)
    try:
        serve_beside(run.caller)
    finally:
        engine.tracked.executing = executing
        del engine.unacknowledged[unacknowledged:]  # no commit comes before the replies of the meantime
    waiting = {session for session, _ in engine.unacknowledged}
    dirty, hub.dirty = hub.dirty, []
    for session in dirty:
        if session in waiting or session in hub.withheld or session.holds_names:
            hub.dirty.append(session)
            continue
        session.dirty = False
        if session.outbox.flush(session) and session.closing:
            session.close_now()


def kill(session: CommandSession, *, is_eval: bool) -> Reply:
    """End the running script or function. Raises CommandError."""
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
    """The process ends while a script runs. Its turn is undone."""

    def __init__(self) -> None:
        super().__init__("the server is shut down")


def end(session: CommandSession) -> bool:
    """End the running script, whatever it has done, for a session that ends the process. Returns False if none runs."""
    run: ScriptRun | None = session.engine.scripts.running
    if run is None:
        return False
    run.kill(Ended())
    return True
