"""EVAL, EVALSHA and what reads only."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.arguments.integers import count_of_keys
from rlite_pubsub.engine.scripts.cache import Script
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.monitor import feed_monitors
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.scripts.runner import Runner

_NO_SCRIPT: Final = b"NOSCRIPT No matching script. Please use EVAL."
_SHA_BYTES: Final = 40
_UNKNOWN: Final = "We cannot tell how the keys will be used so we assume the worst, {}"
_BEHIND: Final = (
    Arg("numkeys", "integer"),
    Arg("key", "key", optional=True, multiple=True, key_spec=0),
    Arg("arg", optional=True, multiple=True),
)
_DEPENDS: Final = "Depends on the script that is executed."


def _key_specs(flags: tuple[str, ...], notes: str | None = None) -> tuple[KeySpec, ...]:
    return (KeySpec(flags, ("index", 2), ("keynum", 0, 1, 1), notes=notes),)


@command(
    "eval",
    arity=-3,
    flags="noscript skip_monitor may_replicate no_mandatory_keys stale movablekeys",
    is_plain=True,
    group="scripting",
    since="2.6.0",
    categories="scripting",
    summary="Execute a Lua script server side",
    complexity=_DEPENDS,
    arguments=(Arg("script"), *_BEHIND),
    key_specs=_key_specs(("RW", "ACCESS", "UPDATE"), _UNKNOWN.format("RW and UPDATE")),
)
def eval_(session: CommandSession, args: list[bytes]) -> Reply:
    return _evaluate(session, args, False)


@command(
    "eval_ro",
    arity=-3,
    flags="noscript skip_monitor no_mandatory_keys stale readonly movablekeys",
    is_plain=True,
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Execute a read-only Lua script server side",
    complexity=_DEPENDS,
    arguments=(Arg("script"), *_BEHIND),
    key_specs=_key_specs(("RO", "ACCESS"), _UNKNOWN.format("RO and ACCESS")),
)
def eval_ro(session: CommandSession, args: list[bytes]) -> Reply:
    return _evaluate(session, args, True)


@command(
    "evalsha",
    arity=-3,
    flags="noscript skip_monitor may_replicate no_mandatory_keys stale movablekeys",
    is_plain=True,
    group="scripting",
    since="2.6.0",
    categories="scripting",
    summary="Execute a Lua script server side",
    complexity=_DEPENDS,
    arguments=(Arg("sha1"), *_BEHIND),
    key_specs=_key_specs(("RW", "ACCESS", "UPDATE")),
)
def evalsha(session: CommandSession, args: list[bytes]) -> Reply:
    return _evaluate_known(session, args, False)


@command(
    "evalsha_ro",
    arity=-3,
    flags="noscript skip_monitor no_mandatory_keys stale readonly movablekeys",
    is_plain=True,
    group="scripting",
    since="7.0.0",
    categories="scripting",
    summary="Execute a read-only Lua script server side",
    complexity=_DEPENDS,
    arguments=(Arg("sha1"), *_BEHIND),
    key_specs=_key_specs(("RO", "ACCESS")),
)
def evalsha_ro(session: CommandSession, args: list[bytes]) -> Reply:
    return _evaluate_known(session, args, True)


def _evaluate(session: CommandSession, args: list[bytes], read_only: bool) -> Reply:
    engine, body = session.engine, args[1]
    if engine.monitors:
        feed_monitors(session, args)  # in front of what the script calls
    keys = count_of_keys(args)
    script = engine.scripts.by_body.get(body)
    if script is None:
        from rlite_pubsub.engine.scripts.runner import runner_of  # with it comes Lua

        script = runner_of(engine).load(hashlib.sha1(body).hexdigest().encode(), body)
    return _run(session, args, script, keys, read_only)


def _evaluate_known(session: CommandSession, args: list[bytes], read_only: bool) -> Reply:
    engine, sha = session.engine, args[1]
    if engine.monitors:
        feed_monitors(session, args)
    script = engine.scripts.find(sha)
    if script is None and len(sha) != _SHA_BYTES:
        raise CommandError(_NO_SCRIPT)
    keys = count_of_keys(args)
    if script is None:
        raise CommandError(_NO_SCRIPT)
    return _run(session, args, script, keys, read_only)


def _run(session: CommandSession, args: list[bytes], script: Script, keys: int, read_only: bool) -> Reply:
    runner: Runner = session.engine.scripts.runner  # it has compiled the script
    return runner.run(session, args, runner.run_script, script, keys, read_only)
