"""The scripts that this process knows, by their SHA1: what SCRIPT LOAD and EVAL have brought, as in Redis the process's
and nobody else's. What is compiled of them belongs to the runner, which is made at the first script."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.inline import split

NO_WRITES: Final = b"no-writes"
ALLOW_OOM: Final = b"allow-oom"
FLAGS: Final = (NO_WRITES, ALLOW_OOM, b"allow-stale", b"no-cluster", b"allow-cross-slot-keys")
"""What a script's first line may say of it, and what functions are registered with; as FUNCTION LIST shows them."""

Flags = frozenset[bytes]


@mypyc_attr(allow_interpreted_subclasses=True)
class Program:
    """What can be run: a script, or a function of a library."""

    __slots__ = ("allows_oom", "called", "flags", "is_eval", "name", "writes_nothing")

    def __init__(self, name: bytes, flags: Flags | None, called: Any, *, is_eval: bool) -> None:
        """`called` is the crossing's. `flags`: None where nothing is said, and it may do what old scripts may."""
        self.name = name
        self.flags = flags
        self.called = called
        self.is_eval = is_eval
        self.writes_nothing = flags is not None and NO_WRITES in flags
        self.allows_oom = flags is not None and ALLOW_OOM in flags


class Script(Program):
    """One that a client has brought; its name is its SHA1."""

    __slots__ = ("body",)

    def __init__(self, sha: bytes, body: bytes, flags: Flags | None, called: Any) -> None:
        super().__init__(sha, flags, called, is_eval=True)
        self.body = body


class Scripts:
    """The scripts that an engine knows, and the one that is running."""

    def __init__(self) -> None:
        self.by_sha: dict[bytes, Script] = {}
        self.by_body: dict[bytes, Script] = {}
        self.runner: Any = None  # runner.py's, once there was a script
        self.running: Any = None  # a run.py's, while a script or a function runs
        self.refusal: bytes | None = None  # of what others ask for: a script has been running for too long
        self.all_commands = False  # scripts may call what they may not (DEBUG SET-DISABLE-DENY-SCRIPTS)
        self.body_bytes = 0

    def find(self, sha: bytes) -> Script | None:
        """The script with this digest, in any case."""
        return self.by_sha.get(sha) or self.by_sha.get(sha.lower())

    def add(self, script: Script) -> None:
        """Keep it until `flush`."""
        self.by_sha[script.name] = self.by_body[script.body] = script
        self.body_bytes += len(script.body)

    def flush(self) -> None:
        """Forget all of them, and the Lua that they ran in."""
        self.by_sha.clear()
        self.by_body.clear()
        self.body_bytes = 0
        self.runner = None


def shebang(body: bytes) -> tuple[Flags | None, int]:
    """What a script says of itself in its first line (`#!lua flags=no-writes,allow-oom`), None if nothing; where its
    code begins. Raises CommandError."""
    if not body.startswith(b"#!"):
        return None, 0
    end = body.find(b"\n")
    if end < 0:
        raise CommandError(b"ERR Invalid script shebang")
    words = split(c_string(body[:end]))
    if not words:
        raise CommandError(b"ERR Invalid engine in script shebang")
    if words[0] != b"#!lua":
        raise CommandError(b"ERR Unexpected engine in script shebang: %b" % words[0])
    flags: set[bytes] = set()
    for word in words[1:]:
        if not word.startswith(b"flags="):
            raise CommandError(b"ERR Unknown lua shebang option: %b" % word)
        named = word.removeprefix(b"flags=")
        for flag in named.split(b",") if named else ():
            if flag not in FLAGS:
                raise CommandError(b"ERR Unexpected flag in script shebang: %b" % flag)
            flags.add(flag)
    return frozenset(flags), end
