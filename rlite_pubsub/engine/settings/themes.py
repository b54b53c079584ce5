"""The directives that have an effect, by theme, in the order in which help and docs show them."""

from __future__ import annotations

from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.engine.settings.tls_directives import OUR_TLS, TLS

_NAMED = {
    "Where it listens": "port bind workers unixsocket unixsocketperm http-port http-bind",
    "The store": "dir umask appendfsync store-quota compact-every writer-patience databases",
    "Access": """requirepass requirepass-file protected-mode aclfile acl-pubsub-default acllog-max-len
        http-tokens http-cors-origins enable-protected-configs enable-debug-command enable-module-command""",
    "Retention and the cold store": """retain cold-store cold-block-size cold-block-age cold-cache cold-grace
        events-segments events-segment-size""",
    "Replication": """replicaof masteruser masterauth bind-source-addr repl-timeout replica-read-only
        replica-serve-stale-data repl-diskless-sync repl-backlog-size repl-backlog-ttl repl-ping-replica-period
        min-replicas-to-write min-replicas-max-lag""",
    "Discovery": "discoverable register register-as",
    "Backup": "backup-to backup-interval backup-retain",
    "Slow and absent subscribers": """client-output-buffer-limit slow-subscriber-policy spill-threshold
        durable-subscriber-ttl durable-subscriber-max-bytes durable-subscriber-max-count""",
    "Warnings": """warn-mailbox-bytes warn-mailbox-age warn-group-lag warn-connection-bytes warn-quota-percent
        warn-disk-percent warn-link-down""",
    "Keys": """maxmemory maxmemory-policy maxmemory-samples lfu-log-factor lfu-decay-time
        notify-keyspace-events""",
    "Connections and requests": """maxclients timeout tcp-keepalive tcp-backlog proto-max-bulk-len
        client-query-buffer-limit tracking-table-max-keys busy-reply-threshold""",
    "HTTP": "http-max-body http-body-timeout http-heartbeat http-retry",
    "TLS": " ".join(each.name for each in (*TLS, *OUR_TLS)),
    "The process and its log": """loglevel logfile syslog-enabled syslog-ident syslog-facility daemonize pidfile
        supervised""",
    "Measuring": """slowlog-log-slower-than slowlog-max-len latency-monitor-threshold latency-tracking
        latency-tracking-info-percentiles""",
    "Encodings of small values": """hash-max-listpack-entries hash-max-listpack-value set-max-intset-entries
        zset-max-listpack-entries zset-max-listpack-value hll-sparse-max-bytes stream-node-max-entries
        stream-node-max-bytes""",
}
_THEMED = {name for names in _NAMED.values() for name in names.split()}

THEMES: dict[str, tuple[str, ...]] = {theme: tuple(names.split()) for theme, names in _NAMED.items()} | {
    "More": tuple(name for name, directive in DIRECTIVES.items() if directive.meaning and name not in _THEMED)
}
"""Theme -> names of directives. None with a meaning is left out."""

IGNORED: tuple[str, ...] = tuple(name for name, directive in DIRECTIVES.items() if not directive.meaning)
"""Redis's directives whose values are checked, stored and shown, and have no effect."""
