"""The exact error texts of redis-server 7.0.15, and the two exceptions that carry them.

A `ProtocolError` is the peer's fault beneath the commands: it is answered and the connection is closed.
A `CommandError` is the peer's fault within a command: it is answered and the connection goes on.
Handlers raise, dispatch alone answers. The texts carry their code word (`ERR`, `WRONGTYPE`, …), not the leading minus.
"""

from __future__ import annotations


class ProtocolError(Exception):
    """The bytes are not a request: answer with `text`, then close."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = b"ERR Protocol error: " + text


class CommandError(Exception):
    """A request that is refused: answer with `text` and go on."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


INVALID_MULTIBULK_LENGTH = b"invalid multibulk length"
INVALID_BULK_LENGTH = b"invalid bulk length"
UNAUTHENTICATED_MULTIBULK_LENGTH = b"unauthenticated multibulk length"
UNAUTHENTICATED_BULK_LENGTH = b"unauthenticated bulk length"
TOO_BIG_INLINE = b"too big inline request"
TOO_BIG_MULTIBULK_COUNT = b"too big mbulk count string"
TOO_BIG_BULK_COUNT = b"too big bulk count string"
UNBALANCED_QUOTES = b"unbalanced quotes in request"

SYNTAX = b"ERR syntax error"
NOT_AN_INTEGER = b"ERR value is not an integer or out of range"
NOT_A_FLOAT = b"ERR value is not a valid float"
NEGATIVE_TIMEOUT = b"ERR timeout is negative"
BAD_TIMEOUT = b"ERR timeout is not an integer or out of range"
WRONG_TYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"
NO_AUTH = b"NOAUTH Authentication required."
WRONG_PASSWORD = b"WRONGPASS invalid username-password pair or user is disabled."
NO_PROTOCOL = b"NOPROTO unsupported protocol version"
NO_REPLICAS = b"NOREPLICAS Not enough good replicas to write."
READ_ONLY_REPLICA = b"READONLY You can't write against a read only replica."
LOADING = b"LOADING Redis is loading the dataset in memory"
MASTER_DOWN = b"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
OUT_OF_MEMORY = b"OOM command not allowed when used memory > 'maxmemory'."
EXEC_ABORTED = b"EXECABORT Transaction discarded because of previous errors."
NOT_IN_TRANSACTION = b"ERR Command not allowed inside a transaction"
DB_OUT_OF_RANGE = b"ERR DB index is out of range"
NO_SUCH_KEY = b"ERR no such key"
SAME_OBJECT = b"ERR source and destination objects are the same"
NO_SUCH_CLIENT = b"ERR No such client"
CLUSTER_DISABLED = b"ERR This instance has cluster support disabled"


def c_string(text: bytes) -> bytes:
    """Return the part of `text` that C's %s prints: it ends at the first NUL."""
    return text.split(b"\0", 1)[0]


def expected_bulk(got: bytes) -> bytes:
    """The first byte of an argument's header was not a dollar."""
    return b"expected '$', got '" + (got + b"'" if got != b"\0" else b"")


def unknown_command(args: list[bytes]) -> CommandError:
    """No such command: its name and the first 128 bytes of its arguments are quoted back."""
    beginning = b""
    for arg in args[1:]:
        if len(beginning) >= 128:
            break
        beginning += b"'" + c_string(arg)[: 128 - len(beginning)] + b"' "
    name = c_string(args[0])[:128]
    return CommandError(b"ERR unknown command '%b', with args beginning with: %b" % (name, beginning))


def unknown_subcommand(args: list[bytes]) -> CommandError:
    """A container command has no such subcommand."""
    return CommandError(
        b"ERR unknown subcommand '%b'. Try %b HELP." % (c_string(args[1])[:128], c_string(args[0]).upper())
    )


def subcommand_syntax(args: list[bytes]) -> CommandError:
    """A subcommand exists, but not with these arguments."""
    return CommandError(
        b"ERR unknown subcommand or wrong number of arguments for '%b'. Try %b HELP."
        % (c_string(args[1])[:128], c_string(args[0]).upper())
    )


def wrong_arity(full_name: bytes) -> CommandError:
    """Too few or too many arguments; `full_name` is lower case, `client|setname` for a subcommand."""
    return CommandError(b"ERR wrong number of arguments for '%b' command" % full_name)
