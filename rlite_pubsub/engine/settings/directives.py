"""The table of directives: those with a meaning here. Redis's others, whose values are merely kept, are in kept.py.

All of redis-server 7.0.15's directives are there, with its types, bounds and defaults. Three defaults differ:

- `bind` is the loopback, as in the redis.conf that Redis comes with, and not every address.
- `dir` is the folder of the store, and not the working directory.
- `client-output-buffer-limit pubsub` is 1 GB with no soft limit, because spilled bytes are on disk.

The last ones are ours. `python -m rlite_pubsub.engine.settings.directives` prints the README's table.
"""

from __future__ import annotations

from rlite_pubsub.engine.settings.composites import (
    Addresses,
    EventClasses,
    FolderPath,
    OutputLimitsByClass,
    Percentiles,
)
from rlite_pubsub.engine.settings.directive import (
    INT_MAX,
    UINT_MAX,
    Directive,
    Octal,
    Password,
    choice,
    declare,
    number,
    size,
    text,
    yes_no,
)
from rlite_pubsub.engine.settings.ignored import KEPT
from rlite_pubsub.engine.settings.retention_words import RetentionRules
from rlite_pubsub.engine.settings.spelling import LONG_MAX, ULONG_MAX
from rlite_pubsub.engine.settings.tls_directives import OUR_TLS, TLS

MEANINGFUL: tuple[Directive, ...] = (
    number("port", 6379, 0, 65535, meaning="TCP port to listen on; 0 for none."),
    declare(
        "bind",
        Addresses(),
        "127.0.0.1 -::1",
        meaning="Addresses to listen on; one that starts with a minus may be missing. Redis listens everywhere.",
    ),
    text("unixsocket", "", "immutable", meaning="Path of a unix socket to listen on."),
    declare(
        "unixsocketperm",
        Octal(0, 0o777, unsigned=True),
        "0",
        "immutable",
        meaning="File permissions of that socket, in octal.",
    ),
    declare(
        "dir",
        FolderPath(),
        "./store",
        "protected settled",
        meaning="The folder of the store. For Redis, the working directory.",
    ),
    declare("requirepass", Password(), "", "secret", meaning="Password of the default user."),
    text("aclfile", "", "immutable", meaning="File of users, a line each, as ACL LIST shows them."),
    choice(
        "acl-pubsub-default",
        "resetchannels",
        "allchannels resetchannels",
        "shared",
        meaning="The channels of a new user: allchannels or resetchannels (none).",
    ),
    number("acllog-max-len", 128, 0, LONG_MAX, meaning="Entries that ACL LOG keeps."),
    yes_no("protected-mode", "yes", meaning="Without a password, refuse clients that are not on this machine."),
    number("maxclients", 10000, 1, UINT_MAX, unsigned=True, meaning="Most connections at once."),
    number(
        "timeout",
        0,
        0,
        INT_MAX,
        meaning="Close a connection that has been idle for so many seconds; 0 for never. Subscribers are exempt.",
    ),
    number("tcp-keepalive", 300, 0, INT_MAX, meaning="Seconds of silence after which a peer is probed; 0 for never."),
    number("tcp-backlog", 511, 0, INT_MAX, "immutable", meaning="Connections that may wait to be accepted."),
    number("databases", 16, 1, INT_MAX, "immutable", meaning="How many databases SELECT accepts."),
    choice(
        "loglevel",
        "notice",
        "debug verbose notice warning",
        meaning="How much is logged: debug, verbose, notice or warning.",
    ),
    text("logfile", "", "immutable", meaning="File to log to; empty for standard output."),
    yes_no("syslog-enabled", "no", "immutable", meaning="Log to syslog as well."),
    text("syslog-ident", "redis", "immutable", meaning="The name under which syslog shows it."),
    choice(
        "syslog-facility",
        "local0",
        "user local0 local1 local2 local3 local4 local5 local6 local7",
        "immutable",
        meaning="The syslog facility.",
    ),
    yes_no("daemonize", "no", "immutable", meaning="Run in the background."),
    text("pidfile", "", "immutable", meaning="File that holds the process id while the server runs."),
    choice(
        "supervised",
        "no",
        "upstart systemd auto no",
        "immutable",
        meaning="Tell systemd when the server is ready: systemd, auto or no.",
    ),
    declare(
        "client-output-buffer-limit",
        OutputLimitsByClass(),
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 1073741824 0 0",
        meaning="Bytes that may wait for a client: class, hard limit, soft limit and its seconds. Spilled bytes count.",
    ),
    size("proto-max-bulk-len", "536870912", 1048576, LONG_MAX, meaning="Longest single argument of a request."),
    size(
        "client-query-buffer-limit",
        "1073741824",
        1048576,
        LONG_MAX,
        unsigned=True,
        meaning="Longest request that is not yet complete.",
    ),
    size(
        "maxmemory",
        "0",
        0,
        ULONG_MAX,
        "shared",
        unsigned=True,
        meaning="Most bytes of keys and messages that the store keeps; 0 for no limit. For Redis, of the process.",
    ),
    choice(
        "maxmemory-policy",
        "noeviction",
        "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction",
        "shared",
        meaning="Which keys are evicted at that limit.",
    ),
    number("maxmemory-samples", 5, 1, INT_MAX, meaning="Keys among which the least used one is looked for."),
    number("lfu-log-factor", 10, 0, INT_MAX, meaning="The more, the slower OBJECT FREQ grows with uses."),
    number("lfu-decay-time", 1, 0, INT_MAX, meaning="Minutes without a use after which OBJECT FREQ loses one."),
    number(
        "slowlog-log-slower-than",
        10000,
        -1,
        LONG_MAX,
        meaning="Log a command that took at least so many microseconds; negative for none.",
    ),
    number("slowlog-max-len", 128, 0, LONG_MAX, meaning="Entries that SLOWLOG keeps."),
    number(
        "latency-monitor-threshold",
        0,
        0,
        LONG_MAX,
        meaning="Milliseconds from which LATENCY keeps an event; 0 for none.",
    ),
    yes_no("latency-tracking", "yes", meaning="Keep a histogram of times for each command."),
    declare(
        "latency-tracking-info-percentiles",
        Percentiles(),
        "50 99 99.9",
        meaning="Percentiles that INFO latencystats shows.",
    ),
    declare(
        "notify-keyspace-events",
        EventClasses(),
        "",
        "shared",
        meaning="Classes of keyspace events that are published, by all processes of the store.",
    ),
    choice(
        "appendfsync",
        "everysec",
        "everysec always no",
        meaning="When the durable half of the store is brought to the disk: always, everysec or no.",
    ),
    choice(
        "enable-protected-configs",
        "no",
        "no yes local",
        "immutable",
        meaning="Who may set protected directives with CONFIG SET: no, local or yes.",
    ),
    choice("enable-debug-command", "no", "no yes local", "immutable", meaning="Who may use DEBUG: no, local or yes."),
    choice("enable-module-command", "no", "no yes local", "immutable", meaning="Who may use MODULE: no, local or yes."),
    *TLS,
)

OURS: tuple[Directive, ...] = (
    text(
        "requirepass-file",
        "",
        "immutable",
        ours=True,
        meaning="File whose first line is the password of the default user: an argument can be seen by everybody on "
        "the machine.",
    ),
    choice(
        "slow-subscriber-policy",
        "disconnect",
        "disconnect drop-oldest",
        ours=True,
        meaning="At its limit a subscriber is disconnected, or loses its oldest messages and is told.",
    ),
    size(
        "store-quota",
        "0",
        0,
        LONG_MAX,
        ours=True,
        meaning="Most bytes that the store may take; 0 for what the disk allows.",
    ),
    number(
        "compact-every",
        0,
        0,
        INT_MAX,
        ours=True,
        meaning="Seconds between two times that free pages are given back to the file system; 0 for never.",
    ),
    number(
        "writer-patience",
        5,
        0,
        INT_MAX,
        ours=True,
        meaning="Seconds for which a request waits while another process is in the midst of writing to the store.",
    ),
    size(
        "spill-threshold",
        "256kb",
        0,
        LONG_MAX,
        ours=True,
        meaning="Bytes that may wait for a subscriber in memory before its messages go to its mailbox on disk.",
    ),
    number(
        "durable-subscriber-ttl",
        604800,
        0,
        INT_MAX,
        "shared",
        ours=True,
        meaning="Seconds that a new durable subscriber may be away before it expires; 0 for ever.",
    ),
    size(
        "durable-subscriber-max-bytes",
        "1gb",
        0,
        LONG_MAX,
        "shared",
        ours=True,
        meaning="Most bytes that may wait for a new durable subscriber; beyond, the oldest go. 0 for any number.",
    ),
    declare(
        "retain",
        RetentionRules(),
        "",
        ours=True,
        meaning="A pattern and how much of a topic of such a name is kept: `orders.* 7d 1gb 1000000 entries`. What is "
        "published to such a channel is kept, too. Lines add up, the first that matches counts; `none` for none.",
    ),
    text(
        "cold-store",
        "no",
        "settled",
        ours=True,
        meaning="Where the oldest entries of large topics go, as Parquet files: `local` (the folder `cold` of the "
        "store), a folder, or a URL such as `s3://bucket/prefix`; `no` for nowhere. Needs `pip install "
        "rlite-pubsub[cold]`.",
    ),
    size(
        "cold-block-size",
        "64mb",
        4096,
        INT_MAX,
        ours=True,
        meaning="Once a topic has so many bytes that are not in the cold store, its oldest entries are sealed.",
    ),
    number(
        "cold-block-age",
        0,
        0,
        INT_MAX,
        ours=True,
        meaning="Seconds after which an entry is sealed, though its topic is smaller; 0 for none.",
    ),
    size(
        "cold-cache",
        "64mb",
        0,
        LONG_MAX,
        ours=True,
        meaning="Memory for what is read from the cold store.",
    ),
    number(
        "cold-grace",
        3600,
        5,
        INT_MAX,
        ours=True,
        meaning="Seconds that a file of the cold store which is no longer needed stays, for those who read it yet.",
    ),
    number(
        "http-port",
        0,
        0,
        65535,
        "settled",
        ours=True,
        meaning="TCP port for HTTP; 0 for none. Needs `pip install rlite-pubsub[http]`.",
    ),
    declare(
        "http-bind",
        Addresses(),
        "127.0.0.1 -::1",
        "settled",
        ours=True,
        meaning="Addresses to listen on for HTTP; one that starts with a minus may be missing.",
    ),
    size("http-max-body", "1mb", 1, INT_MAX, ours=True, meaning="Longest body that HTTP takes."),
    number(
        "http-body-timeout",
        60,
        1,
        INT_MAX,
        ours=True,
        meaning="Seconds that the body of a request may take to come.",
    ),
    text(
        "http-cors-origins",
        "",
        ours=True,
        meaning="Origins whose pages may use HTTP, blanks between them; `*` for every one, empty for none but our own.",
    ),
    text(
        "http-tokens",
        "",
        ours=True,
        meaning="File of bearer tokens for HTTP, a line each: `TOKEN read PATTERN … write PATTERN …`.",
    ),
    number(
        "http-heartbeat",
        15,
        1,
        INT_MAX,
        ours=True,
        meaning="Seconds of silence after which a stream says that it lives.",
    ),
    number(
        "http-retry",
        2000,
        0,
        INT_MAX,
        ours=True,
        meaning="Milliseconds after which a reader whose stream has ended comes back.",
    ),
    number(
        "events-segments",
        0,
        0,
        INT_MAX,
        ours=True,
        meaning="Segments of events that are kept; 0 for all, or as `retain` says.",
    ),
    size("events-segment-size", "64mb", 1, LONG_MAX, ours=True, meaning="Bytes of events in such a segment."),
    *OUR_TLS,
)

DIRECTIVES: dict[str, Directive] = {directive.name: directive for directive in (*MEANINGFUL, *KEPT, *OURS)}
"""By their own names, in the order in which CONFIG GET shows them."""

PRIMARY: dict[str, str] = {name: name for name in DIRECTIVES} | {
    directive.alias: name for name, directive in DIRECTIVES.items() if directive.alias is not None
}
"""Every name by which a directive is known, aliases included -> its own name."""


def markdown() -> str:
    """The README's table of directives."""
    rows = ["| directive | default | meaning |", "|---|---|---|"]
    for directive in (*MEANINGFUL, *OURS):
        default = b" ".join(directive.default).decode()
        rows.append(f"| `{directive.name}` | {f'`{default}`' if default else 'none'} | {directive.meaning} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
