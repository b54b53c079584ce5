"""The scripts that this process knows, by their SHA1: from SCRIPT LOAD and EVAL; as in Redis, they belong to the
process alone. Their compiled form belongs to the runner, which is made for the first script."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.inline import split

NO_WRITES: Final = b"no-writes"
ALLOW_OOM: Final = b"allow-oom"
ALLOW_STALE: Final = b"allow-stale"
FLAGS: Final = (NO_WRITES, ALLOW_OOM, ALLOW_STALE, b"no-cluster", b"allow-cross-slot-keys")
"""The flags in a script's first line, and those of registered functions; as FUNCTION LIST shows them."""

Flags = frozenset[bytes]


@mypyc_attr(allow_interpreted_subclasses=True)
class Program:
    """Something to run: a script, or a function of a library."""

    __slots__ = ("allows_oom", "called", "flags", "is_eval", "name", "writes_nothing")

    def __init__(self, name: bytes, flags: Flags | None, called: Any, *, is_eval: bool) -> None:
        """`called` belongs to the crossing. `flags`: None if there are none, and it may do what old scripts may."""
        self.name = name
        self.flags = flags
        self.called = called
        self.is_eval = is_eval
        self.writes_nothing = flags is not None and NO_WRITES in flags
        self.allows_oom = flags is not None and ALLOW_OOM in flags


class Script(Program):
    """A script from a client; its name is its SHA1."""

    __slots__ = ("body",)

    def __init__(self, sha: bytes, body: bytes, flags: Flags | None, called: Any) -> None:
        super().__init__(sha, flags, called, is_eval=True)
        self.body = body


class Scripts:
    """The scripts that an engine knows, and the running one."""

    def __init__(self) -> None:
        self.by_sha: dict[bytes, Script] = {}
        self.by_body: dict[bytes, Script] = {}
        self.runner: Any = None  # from runner.py, once there was a script
        self.running: Any = None  # from run.py, while a script or a function runs
        self.refusal: bytes | None = None  # of other clients' requests: a script has been running for too long
        self.all_commands = False  # scripts may call commands that are denied to them (DEBUG SET-DISABLE-DENY-SCRIPTS)
        self.body_bytes = 0

    def find(self, sha: bytes) -> Script | None:
        """Return the script with this digest, in any case."""
        return self.by_sha.get(sha) or self.by_sha.get(sha.lower())

    def add(self, script: Script) -> None:
        """Keep a script until `flush`."""
        self.by_sha[script.name] = self.by_body[script.body] = script
        self.body_bytes += len(script.body)

    def flush(self) -> None:
        """Forget all scripts, and the Lua that they ran in."""
        self.by_sha.clear()
        self.by_body.clear()
        self.body_bytes = 0
        self.runner = None


def shebang(body: bytes) -> tuple[Flags | None, int]:
    """Return the flags in a script's first line (`#!lua flags=no-writes,allow-oom`), None if it has no such line, and
    where its code begins. Raises CommandError."""
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
