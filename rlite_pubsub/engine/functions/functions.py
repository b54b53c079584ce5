"""Functions of one engine: what runs them, and the libraries that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.functions.libraries import Libraries
from rlite_pubsub.engine.functions.library import Function, FunctionError
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
        self._runner: Runner | None = None

    def call(
        self, session: CommandSession, args: list[bytes], function: Function, keys: int, *, read_only: bool
    ) -> Reply:
        """FCALL, whose request is `args`: so many of what stands behind the third are keys. Raises CommandError, and
        StoreHeld where it is to be called again."""
        runner = self._runner
        assert runner is not None  # it has loaded the function
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

    @property
    def held_bytes(self) -> int:
        """Of memory for their Lua."""
        held: int = self._runner.sandbox.held_bytes if self._runner is not None else 0
        return held

    def _register(self, body: bytes, seconds: float) -> Mapping[bytes, Function]:
        """Raises FunctionError."""
        from rlite_pubsub.engine.engine import REDIS_VERSION
        from rlite_pubsub.engine.scripts.runner import Runner  # with it comes Lua
        from rlite_pubsub.engine.scripts.sandbox import LoadFailure, SyntaxFailure

        if self._runner is None:
            self._runner = Runner(self._engine, REDIS_VERSION)
        try:
            registered = self._runner.load_library(body, seconds)
        except SyntaxFailure as failure:
            raise FunctionError(b"Error compiling function: " + failure.text) from failure
        except LoadFailure as failure:
            raise FunctionError(b"Error registering functions: " + failure.text) from failure
        return {one[0]: Function(*one) for one in registered}
