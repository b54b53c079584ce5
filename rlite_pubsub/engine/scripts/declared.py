"""What a script or a function says of itself before it is called. A pause goes by that, in the place of what EVAL and
FCALL may do in general."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.scripts.cache import Flags, shebang
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.table import Command


def declared_flags(engine: Engine, command: Command, args: list[bytes]) -> Flags | None:
    """None where it says nothing, is not known, or the request calls neither."""
    match command.name:
        case b"eval" | b"eval_ro":
            return _of_body(engine, args[1])
        case b"evalsha" | b"evalsha_ro":
            script = engine.scripts.find(args[1])
            return None if script is None else script.flags
        case b"fcall" | b"fcall_ro":
            return _of_function(engine, args[1])
        case _:
            return None


def _of_body(engine: Engine, body: bytes) -> Flags | None:
    script = engine.scripts.by_body.get(body)
    if script is not None:
        return script.flags
    try:
        return shebang(body)[0]
    except CommandError:  # which EVAL answers
        return None


def _of_function(engine: Engine, name: bytes) -> Flags | None:
    from rlite_pubsub.engine.functions.functions import functions_of  # with it comes Lua

    functions_of(engine)
    try:
        function = engine.libraries.function(name)
    except StoreError:  # FCALL meets it again, and says so
        return None
    return None if function is None else function.flags
