"""What the protocol refuses, and where each number comes from.

Redis 7.0.15 is the precedent of every one of them (networking.c, server.h, config.c).
"""

MAX_INLINE_BYTES = 64 * 1024
"""An inline request, or a header line, longer than this is refused (PROTO_INLINE_MAX_SIZE)."""

MAX_MULTIBULK = 2**31 - 1
"""The largest number of arguments that a header may announce (INT_MAX)."""

MAX_BULK_BYTES = 512 * 1024 * 1024
"""The default of proto-max-bulk-len."""

MAX_UNAUTHENTICATED_ARGUMENTS = 10
"""While a password is due, a header may announce this many arguments (AUTH and HELLO need no more)."""

MAX_UNAUTHENTICATED_BULK_BYTES = 16384
"""While a password is due, no argument may be longer."""
