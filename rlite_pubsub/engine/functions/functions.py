"""Functions of one engine: the Lua they run in, and their libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.functions.library import Function, FunctionError
from rlite_pubsub.engine.scripts.runner import Runner
from rlite_pubsub.engine.scripts.sandbox import LoadFailure, SyntaxFailure
from rlite_pubsub.protocol.replies import Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.session import CommandSession

LOAD_S: Final = 0.5
"""How long the code of a new library may run, in seconds."""
LOAD_AGAIN_S: Final = 10.0
"""The same for a library that was loaded before, on a machine that may be busy."""


class Functions:
    """Functions run in a Lua of their own, apart from scripts."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def call(
        self, session: CommandSession, args: list[bytes], function: Function, keys: int, read_only: bool
    ) -> Reply:
        """Execute FCALL, whose request is `args`: after the third argument come this many keys. Raises CommandError,
        and StoreHeld if it must be called again."""
        runner = self._runner
        return runner.run(session, args, runner.run_function, function, keys, read_only)

    @property
    def held_bytes(self) -> int:
        """How much memory their Lua uses."""
        return self._runner.sandbox.held_bytes

    def register(self, body: bytes, seconds: float) -> Mapping[bytes, Function]:
        """Return the functions that a library's code registers. Raises FunctionError."""
        try:
            registered = self._runner.load_library(body, seconds)
        except SyntaxFailure as failure:
            raise FunctionError(b"Error compiling function: " + failure.text) from failure
        except LoadFailure as failure:
            raise FunctionError(b"Error registering functions: " + failure.text) from failure
        return {one[0]: Function(*one) for one in registered}


def functions_of(engine: Engine) -> Functions:
    """Return the engine's functions, made when somebody first asks for them."""
    libraries = engine.libraries
    functions: Functions | None = libraries.functions
    if functions is None:
        made = libraries.functions = functions = Functions(Runner(engine, engine.redis_version))
        libraries.register_by(lambda body: made.register(body, LOAD_S), lambda body: made.register(body, LOAD_AGAIN_S))
    return functions
