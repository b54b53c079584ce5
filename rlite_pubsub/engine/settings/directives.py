"""The table of directives that have an effect. Redis's others, whose values are merely kept, are in ignored.py.

All of redis-server 7.0.15's directives are there, with its types, bounds and defaults. Three defaults differ:

- `bind` is the loopback, as in the redis.conf that Redis comes with, and not every address.
- `dir` is the folder of the store, and not the working directory.
- `client-output-buffer-limit pubsub` is 1 GB with no soft limit, because spilled bytes are on disk.

The last ones are ours. `python -m rlite_pubsub.engine.settings.directives` prints the reference's table.
"""

from __future__ import annotations

from rlite_pubsub.engine.settings.composites import (
    Addresses,
    BacklogSize,
    EventClasses,
    FolderPath,
    Master,
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
        meaning="Addresses to listen on; one with a leading minus may be unavailable. Redis listens on all addresses.",
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
        meaning="The folder of the store. In Redis, the working directory.",
    ),
    declare("requirepass", Password(), "", "secret", meaning="Password of the default user."),
    declare(
        "replicaof",
        Master(),
        "no one",
        "immutable shared",
        alias="slaveof",
        meaning="Host and port of the server whose replica this store is.",
    ),
    text("masteruser", "", "secret", meaning="The user as whom a replica logs in."),
    declare("masterauth", Password(), "", "secret", meaning="The password with which a replica logs in."),
    text("bind-source-addr", "", meaning="The own address from which a replica connects to its master."),
    number("repl-timeout", 60, 1, INT_MAX, meaning="Seconds for which a master or a replica may say nothing."),
    yes_no("replica-read-only", "yes", alias="slave-read-only", meaning="Refuse clients' writes on a replica."),
    yes_no(
        "replica-serve-stale-data",
        "yes",
        alias="slave-serve-stale-data",
        meaning="Answer from a replica's keys while it has no link to its master.",
    ),
    yes_no(
        "repl-diskless-sync",
        "yes",
        meaning="Send a new replica the store's snapshot while it is read; else as a file that is written before.",
    ),
    declare(
        "repl-backlog-size",
        BacklogSize(1, LONG_MAX),
        "1mb",
        meaning="Bytes of the replication stream that are kept, so that a replica that was cut off can resume.",
    ),
    number(
        "repl-backlog-ttl",
        3600,
        0,
        LONG_MAX,
        meaning="Seconds for which the replication stream is written after the last replica has gone; 0 for ever.",
    ),
    number(
        "repl-ping-replica-period",
        10,
        1,
        INT_MAX,
        alias="repl-ping-slave-period",
        meaning="Seconds between PINGs to replicas.",
    ),
    number(
        "min-replicas-to-write",
        0,
        0,
        INT_MAX,
        alias="min-slaves-to-write",
        meaning="Refuse writes while fewer replicas than this have been heard lately; 0 for none.",
    ),
    number(
        "min-replicas-max-lag",
        10,
        0,
        INT_MAX,
        alias="min-slaves-max-lag",
        meaning="Seconds within which a replica must have been heard for min-replicas-to-write.",
    ),
    text("aclfile", "", "immutable", meaning="File of users, one a line, in the format of ACL LIST."),
    choice(
        "acl-pubsub-default",
        "resetchannels",
        "allchannels resetchannels",
        "shared",
        meaning="The channels of a new user: allchannels or resetchannels (none).",
    ),
    number("acllog-max-len", 128, 0, LONG_MAX, meaning="How many entries ACL LOG keeps."),
    yes_no("protected-mode", "yes", meaning="Without a password, refuse clients that are not on this machine."),
    number("maxclients", 10000, 1, UINT_MAX, unsigned=True, meaning="The most connections at once."),
    number(
        "timeout",
        0,
        0,
        INT_MAX,
        meaning="Close connections that have been idle for this many seconds; 0 for never. Subscribers are exempt.",
    ),
    number("tcp-keepalive", 300, 0, INT_MAX, meaning="Probe a silent peer after this many seconds; 0 for never."),
    number("tcp-backlog", 511, 0, INT_MAX, "immutable", meaning="How many connections may wait to be accepted."),
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
        meaning="Bytes that may wait for a client: class, hard limit, soft limit and its seconds. Bytes buffered to "
        "disk count.",
    ),
    size("proto-max-bulk-len", "536870912", 1048576, LONG_MAX, meaning="The longest single argument of a request."),
    size(
        "client-query-buffer-limit",
        "1073741824",
        1048576,
        LONG_MAX,
        unsigned=True,
        meaning="The longest request that is not complete yet.",
    ),
    size(
        "maxmemory",
        "0",
        0,
        ULONG_MAX,
        "shared",
        unsigned=True,
        meaning="The most bytes of keys and messages in the store; 0 for no limit. In Redis, it limits the memory of "
        "the process.",
    ),
    choice(
        "maxmemory-policy",
        "noeviction",
        "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction",
        "shared",
        meaning="Which keys are evicted at that limit, and at `store-quota`; what has expired goes first.",
    ),
    number("maxmemory-samples", 5, 1, INT_MAX, meaning="How many keys are sampled to find the least used one."),
    number("lfu-log-factor", 10, 0, INT_MAX, meaning="The higher, the more slowly OBJECT FREQ grows with use."),
    number("lfu-decay-time", 1, 0, INT_MAX, meaning="Minutes without use after which OBJECT FREQ decreases by one."),
    number(
        "slowlog-log-slower-than",
        10000,
        -1,
        LONG_MAX,
        meaning="Log commands that take at least this many microseconds; negative for none.",
    ),
    number("slowlog-max-len", 128, 0, LONG_MAX, meaning="How many entries SLOWLOG keeps."),
    number(
        "latency-monitor-threshold",
        0,
        0,
        LONG_MAX,
        meaning="LATENCY records events that take at least this many milliseconds; 0 for none.",
    ),
    yes_no("latency-tracking", "yes", meaning="Keep a latency histogram for each command."),
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
        meaning="Which classes of keyspace events are published. It applies to all processes of the store.",
    ),
    choice(
        "appendfsync",
        "everysec",
        "everysec always no",
        meaning="When data is synced to disk: always (before each reply), everysec, or no (the kernel decides).",
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
    number(
        "busy-reply-threshold",
        5000,
        0,
        LONG_MAX,
        alias="lua-time-limit",
        meaning="Milliseconds after which a running script is reported as busy and can be killed; 0 for never.",
    ),
    number(
        "hash-max-listpack-entries",
        512,
        0,
        LONG_MAX,
        alias="hash-max-ziplist-entries",
        unsigned=True,
        meaning="Fields of a hash up to which OBJECT ENCODING says listpack.",
    ),
    size(
        "hash-max-listpack-value",
        "64",
        0,
        LONG_MAX,
        alias="hash-max-ziplist-value",
        unsigned=True,
        meaning="Longest field or value of such a hash.",
    ),
    number(
        "set-max-intset-entries",
        512,
        0,
        LONG_MAX,
        unsigned=True,
        meaning="Members of a set of integers up to which OBJECT ENCODING says intset.",
    ),
    number(
        "zset-max-listpack-entries",
        128,
        0,
        LONG_MAX,
        alias="zset-max-ziplist-entries",
        unsigned=True,
        meaning="Members of a sorted set up to which OBJECT ENCODING says listpack.",
    ),
    size(
        "zset-max-listpack-value",
        "64",
        0,
        LONG_MAX,
        alias="zset-max-ziplist-value",
        unsigned=True,
        meaning="Longest member of such a sorted set.",
    ),
    size(
        "hll-sparse-max-bytes",
        "3000",
        0,
        LONG_MAX,
        unsigned=True,
        meaning="Longest sparse form of a HyperLogLog.",
    ),
    number(
        "stream-node-max-entries",
        100,
        0,
        LONG_MAX,
        meaning="Entries in a node of a stream; XADD ~ and XTRIM ~ remove whole nodes.",
    ),
    size(
        "stream-node-max-bytes",
        "4096",
        0,
        LONG_MAX,
        unsigned=True,
        meaning="Bytes in a node of a stream; XADD ~ and XTRIM ~ remove whole nodes.",
    ),
    number(
        "tracking-table-max-keys",
        1000000,
        0,
        LONG_MAX,
        unsigned=True,
        meaning="The most keys remembered for CLIENT TRACKING; beyond it, the oldest are invalidated. 0 for no limit.",
    ),
    *TLS,
)

OURS: tuple[Directive, ...] = (
    number(
        "workers",
        1,
        1,
        256,
        "settled",
        ours=True,
        meaning="Processes that serve together, on one store and the same ports. More than one per core is of no use.",
    ),
    declare(
        "umask",
        Octal(0, 0o777, unsigned=True),
        "077",
        "immutable",
        ours=True,
        meaning="Permissions that are removed from the server's new files, in octal. With 007 the group shares the "
        "store.",
    ),
    text(
        "requirepass-file",
        "",
        "immutable",
        ours=True,
        meaning="File whose first line is the password of the default user. Everybody on the machine can see "
        "arguments.",
    ),
    choice(
        "slow-subscriber-policy",
        "disconnect",
        "disconnect drop-oldest",
        ours=True,
        meaning="What happens to a subscriber at its limit: disconnect, or drop-oldest with a `gap` message.",
    ),
    size(
        "store-quota",
        "0",
        0,
        LONG_MAX,
        "immutable",
        ours=True,
        meaning="The most bytes that the store may occupy; 0 for what the disk allows.",
    ),
    number(
        "compact-every",
        0,
        0,
        INT_MAX,
        ours=True,
        meaning="Give free pages back to the file system every this many seconds; 0 for only after FLUSHALL and its "
        "like, when nobody writes and a file takes more than 64 MB and four times what is live.",
    ),
    number(
        "writer-patience",
        5,
        0,
        INT_MAX,
        ours=True,
        meaning="Seconds that a request waits while another process holds the writer's lock of the store.",
    ),
    size(
        "spill-threshold",
        "256kb",
        0,
        LONG_MAX,
        ours=True,
        meaning="Bytes that may wait for a subscriber in memory before its messages are buffered to disk.",
    ),
    number(
        "durable-subscriber-ttl",
        604800,
        0,
        INT_MAX,
        "shared",
        ours=True,
        meaning="Seconds that a new durable subscriber may be away before it expires; 0 for no limit.",
    ),
    size(
        "durable-subscriber-max-bytes",
        "1gb",
        0,
        LONG_MAX,
        "shared",
        ours=True,
        meaning="The most bytes that may wait for a new durable subscriber; then its oldest are dropped. 0 for no "
        "limit.",
    ),
    number(
        "durable-subscriber-max-count",
        100000,
        0,
        INT_MAX,
        "shared",
        ours=True,
        meaning="The most durable subscribers that a store may have; more are refused. 0 for no limit.",
    ),
    declare(
        "retain",
        RetentionRules(),
        "",
        ours=True,
        meaning="A pattern, and how much of matching topics is retained: `orders.* 7d 1gb 1000000 entries`. Messages "
        "to matching channels are retained too. Lines add up; the first that matches applies. `none` for none.",
    ),
    size(
        "warn-mailbox-bytes",
        "64mb",
        0,
        LONG_MAX,
        ours=True,
        meaning="Warn of a durable subscriber that is away when this many bytes wait for it; 0 for never.",
    ),
    number(
        "warn-mailbox-age",
        3600,
        0,
        INT_MAX,
        ours=True,
        meaning="Warn of a durable subscriber that is away when its oldest message has waited for this many seconds; 0 "
        "for never.",
    ),
    number(
        "warn-group-lag",
        100000,
        0,
        LONG_MAX,
        ours=True,
        meaning="Warn of a consumer group that has this many entries yet to read; 0 for never.",
    ),
    size(
        "warn-connection-bytes",
        "16mb",
        0,
        LONG_MAX,
        ours=True,
        meaning="Warn of a connection for which this many bytes wait, in memory and on disk; 0 for never.",
    ),
    number(
        "warn-quota-percent",
        80,
        0,
        100,
        ours=True,
        meaning="Warn when the store uses this much of store-quota; 0 for never.",
    ),
    number(
        "warn-disk-percent",
        90,
        0,
        100,
        ours=True,
        meaning="Warn when this much of the store's disk is used; 0 for never.",
    ),
    number(
        "warn-link-down",
        10,
        0,
        INT_MAX,
        ours=True,
        meaning="Warn of a link to another server that has been down for this many seconds, or can't transfer a topic; "
        "0 for never.",
    ),
    text(
        "cold-store",
        "no",
        "settled secret",
        ours=True,
        meaning="Where the oldest entries of large topics are moved, as Parquet files: `local` (the folder `cold` of "
        "the store), a folder, or a URL such as `s3://bucket/prefix`; `no` for nowhere. Needs the extra `cold`.",
    ),
    size(
        "cold-block-size",
        "64mb",
        4096,
        INT_MAX,
        ours=True,
        meaning="Seal a topic's oldest entries once it has this many bytes outside the cold store.",
    ),
    number(
        "cold-block-age",
        0,
        0,
        INT_MAX,
        ours=True,
        meaning="Also seal entries older than this many seconds; 0 for none.",
    ),
    size(
        "cold-cache",
        "64mb",
        0,
        LONG_MAX,
        ours=True,
        meaning="Memory for entries read from the cold store.",
    ),
    number(
        "cold-grace",
        3600,
        5,
        INT_MAX,
        ours=True,
        meaning="Seconds before a file that the cold store no longer needs is deleted, for readers that still use it.",
    ),
    yes_no(
        "discoverable",
        "yes",
        "settled",
        ours=True,
        meaning="Whether `rlite-pubsub discover`, run by the same user, finds this server.",
    ),
    text(
        "register",
        "",
        "settled secret",
        ours=True,
        meaning="Register in this directory, with the names of the topics: the URL of a Redis, Valkey or rlite-pubsub.",
    ),
    text(
        "register-as",
        "",
        "settled secret",
        ours=True,
        meaning="The URL under which others reach this server, such as `redis://db1.example:6379`; by default the "
        "addresses that it listens on.",
    ),
    text(
        "backup-to",
        "",
        "settled secret",
        ours=True,
        meaning="Back the store up continuously to this folder, which must be outside of it, or URL such as "
        "`s3://bucket/prefix` (needs the extra `cold`). SAVE, BGSAVE and LASTSAVE then mean this backup.",
    ),
    number(
        "backup-interval",
        1,
        1,
        INT_MAX,
        ours=True,
        meaning="Back up new commits after at most this many seconds.",
    ),
    number(
        "backup-retain",
        86400,
        0,
        INT_MAX,
        ours=True,
        meaning="Seconds for which each state in the backup stays restorable; 0 for ever.",
    ),
    number(
        "http-port",
        0,
        0,
        65535,
        "settled",
        ours=True,
        meaning="TCP port for HTTP; 0 for none. Needs the extra `http`.",
    ),
    declare(
        "http-bind",
        Addresses(),
        "127.0.0.1 -::1",
        "settled",
        ours=True,
        meaning="Addresses to listen on for HTTP; one with a leading minus may be unavailable.",
    ),
    size("http-max-body", "1mb", 1, INT_MAX, ours=True, meaning="The longest body that HTTP accepts."),
    number(
        "http-body-timeout",
        60,
        1,
        INT_MAX,
        ours=True,
        meaning="Seconds in which the body of a request must arrive.",
    ),
    text(
        "http-cors-origins",
        "",
        ours=True,
        meaning="Origins whose pages may use the HTTP API, separated by blanks; `*` for all, empty for the server's "
        "own page only.",
    ),
    text(
        "http-tokens",
        "",
        ours=True,
        meaning="File of bearer tokens for HTTP, one a line: `TOKEN read PATTERN … write PATTERN …`.",
    ),
    number(
        "http-heartbeat",
        15,
        1,
        INT_MAX,
        ours=True,
        meaning="Seconds of silence after which a stream sends a heartbeat.",
    ),
    number(
        "http-retry",
        2000,
        0,
        INT_MAX,
        ours=True,
        meaning="Milliseconds after which a reader reconnects when its stream has ended.",
    ),
    number(
        "events-segments",
        0,
        0,
        INT_MAX,
        ours=True,
        meaning="How many segments of events are retained; 0 for all, or as `retain` says.",
    ),
    size("events-segment-size", "64mb", 1, LONG_MAX, ours=True, meaning="Bytes of events in a segment."),
    *OUR_TLS,
)

DIRECTIVES: dict[str, Directive] = {directive.name: directive for directive in (*MEANINGFUL, *KEPT, *OURS)}
"""By their own names, in the order in which CONFIG GET shows them."""

PRIMARY: dict[str, str] = {name: name for name in DIRECTIVES} | {
    directive.alias: name for name, directive in DIRECTIVES.items() if directive.alias is not None
}
"""Every name by which a directive is known, aliases included -> its own name."""


def markdown() -> str:
    """Return the reference's table of directives."""
    rows = ["| directive | default | meaning |", "|---|---|---|"]
    for directive in (*MEANINGFUL, *OURS):
        default = b" ".join(directive.default).decode()
        rows.append(f"| `{directive.name}` | {f'`{default}`' if default else 'none'} | {directive.meaning} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
