"""Functions of one engine: what runs them, and the libraries that have them."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.functions.libraries import Libraries
from rlite_pubsub.engine.functions.library import Function, FunctionError, check_name
from rlite_pubsub.protocol.replies import Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.scripts.runner import Runner
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.storage.environment import Environment

LOAD_S: Final = 0.5
"""So long may the code of a new library run."""
LOAD_AGAIN_S: Final = 10.0
"""And that of one that was loaded before, on a machine that is busy with other things."""


class Functions:
    """They have a Lua of their own, in which no script runs; it is made for the first library."""

    def __init__(self, engine: Engine, data: Environment) -> None:
        self._engine = engine
        self.libraries = Libraries(
            data, lambda body: self._register(body, LOAD_S), lambda body: self._register(body, LOAD_AGAIN_S)
        )
        self.runner: Runner | None = None

    def call(
        self, session: CommandSession, args: list[bytes], function: Function, keys: int, *, read_only: bool
    ) -> Reply:
        """FCALL, whose request is `args`: so many of what stands behind the third are keys. Raises CommandError, and
        StoreHeld where it is to be called again."""
        runner = self._made_runner()
        return runner.run(
            session,
            args,
            runner.run_function,
            function.callback,
            function.name,
            keys,
            function.flags,
            read_only=read_only,
            is_eval=False,
        )
