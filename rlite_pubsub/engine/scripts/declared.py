"""What a script or a function says of itself before it is called. A pause goes by that, and so does what a transaction
may contain, in the place of what EVAL and FCALL may do in general."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.scripts.cache import ALLOW_OOM, ALLOW_STALE, NO_WRITES, Flags, Scripts, shebang
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.functions.libraries import Libraries
    from rlite_pubsub.engine.table import Command

_SCRIPTING: Final = "scripting"
_DECLARABLE: Final = frozenset(("write", "denyoom", "stale"))


def queued_flags(scripts: Scripts, libraries: Libraries, command: Command, args: list[bytes]) -> frozenset[str]:
    """Return what decides whether a transaction may contain this request: its command's flags, but where a script
    declares its own, those say whether it writes, adds, or may read stale data."""
    if command.group != _SCRIPTING:
        return command.flags
    declared = declared_flags(scripts, libraries, command, args)
    if declared is None:
        return command.flags
    flags = set(command.flags - _DECLARABLE)
    if NO_WRITES not in declared:
        flags.add("write")
        if ALLOW_OOM not in declared:
            flags.add("denyoom")
    if ALLOW_STALE in declared:
        flags.add("stale")
    return frozenset(flags)


def declared_flags(scripts: Scripts, libraries: Libraries, command: Command, args: list[bytes]) -> Flags | None:
    """None where it says nothing, is not known here, or the request calls neither."""
    match command.name:
        case b"eval" | b"eval_ro":
            return _of_body(scripts, args[1])
        case b"evalsha" | b"evalsha_ro":
            script = scripts.find(args[1])
            return None if script is None else script.flags
        case b"fcall" | b"fcall_ro":
            return _of_function(libraries, args[1])
        case _:
            return None


def _of_body(scripts: Scripts, body: bytes) -> Flags | None:
    script = scripts.by_body.get(body)
    if script is not None:
        return script.flags
    try:
        return shebang(body)[0]
    except CommandError:  # which EVAL answers
        return None


def _of_function(libraries: Libraries, name: bytes) -> Flags | None:
    if libraries.functions is None:
        return None  # nobody has asked for functions, so no library's code was run
    try:
        function = libraries.function(name)
    except StoreError:  # FCALL meets it again, and says so
        return None
    return None if function is None else function.flags
