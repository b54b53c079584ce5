"""Redis's directives that have no effect here: they are checked, kept, shown and settable, so that programs that set
them work."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from rlite_pubsub.engine.settings.composites import OomScores, SavePoints
from rlite_pubsub.engine.settings.directive import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    AnyText,
    Directive,
    Frequency,
    MemoryOrPercent,
    SettingError,
    ShutdownFlags,
    YesNo,
    choice,
    declare,
    number,
    size,
    text,
    yes_no,
)
from rlite_pubsub.engine.settings.spelling import LONG_MAX, ULONG_MAX
from rlite_pubsub.engine.settings.tls_directives import KEPT_TLS


def file_name(directive: str, noun: str, *, empty: bool = False) -> Callable[[bytes], None]:
    """Return a check that refuses paths, and empty names unless they are allowed."""

    def check(value: bytes) -> None:
        if not value and not empty:
            raise SettingError(f"{directive} can't be empty")
        if b"/" in value or b"\\" in value:
            raise SettingError(f"{directive} can't be a path, just a {noun}")

    return check


def host_name(value: bytes) -> None:
    """Refuse what cannot be a host's name."""
    if len(value) >= 256:
        raise SettingError("Hostnames must be less than 256 characters")
    if re.fullmatch(rb"[A-Za-z0-9.-]*", value) is None:
        raise SettingError("Hostnames may only contain alphanumeric characters, hyphens or dots")


def title_template(value: bytes) -> None:
    """Refuse a template with an unknown variable, or with a brace that does not close."""
    variables = b"title|listen-addr|server-mode|port|tls-port|unixsocket|config-file"
    known = re.fullmatch(rb"([^{]|\{\{|\{(%b)\})*" % variables, value, re.DOTALL)
    if known is None or not re.sub(rb"\{(title|server-mode|unixsocket)\}", b"", value):
        raise SettingError("template format is invalid or contains unknown variables")


class NeverYes(YesNo):
    """A switch that Debian's redis-server cannot turn on."""

    def parse(self, words: Sequence[bytes], old: Any) -> bool:
        if super().parse(words, old):
            raise SettingError(
                "Active defragmentation cannot be enabled: it requires a Redis server compiled with a modified "
                "Jemalloc like the one shipped by default with the Redis source distribution"
            )
        return False


KEPT: tuple[Directive, ...] = (
    yes_no("rdbchecksum", "yes", "immutable"),
    yes_no("io-threads-do-reads", "no", "immutable"),
    yes_no("always-show-logo", "no", "immutable"),
    yes_no("rdbcompression", "yes"),
    yes_no("rdb-del-sync-files", "no"),
    yes_no("activerehashing", "yes"),
    yes_no("stop-writes-on-bgsave-error", "yes"),
    yes_no("dynamic-hz", "yes"),
    yes_no("lazyfree-lazy-eviction", "no"),
    yes_no("lazyfree-lazy-expire", "no"),
    yes_no("lazyfree-lazy-server-del", "no"),
    yes_no("lazyfree-lazy-user-del", "no"),
    yes_no("lazyfree-lazy-user-flush", "no"),
    yes_no("repl-disable-tcp-nodelay", "no"),
    yes_no("aof-rewrite-incremental-fsync", "yes"),
    yes_no("no-appendfsync-on-rewrite", "no"),
    yes_no("cluster-require-full-coverage", "yes"),
    yes_no("rdb-save-incremental-fsync", "yes"),
    yes_no("aof-load-truncated", "yes"),
    yes_no("aof-use-rdb-preamble", "yes"),
    yes_no("aof-timestamp-enabled", "no"),
    yes_no("cluster-replica-no-failover", "no", alias="cluster-slave-no-failover"),
    yes_no("replica-lazy-flush", "no", alias="slave-lazy-flush"),
    yes_no("replica-ignore-maxmemory", "yes", alias="slave-ignore-maxmemory"),
    yes_no("jemalloc-bg-thread", "yes"),
    declare("activedefrag", NeverYes(), "no"),
    yes_no("cluster-enabled", "no", "immutable"),
    yes_no("appendonly", "no"),
    yes_no("cluster-allow-reads-when-down", "no"),
    yes_no("cluster-allow-pubsubshard-when-down", "yes"),
    yes_no("crash-log-enabled", "yes"),
    yes_no("crash-memcheck-enabled", "yes"),
    yes_no("use-exit-on-panic", "no", "hidden"),
    yes_no("lua-enable-deprecated-api", "no", "hidden immutable"),
    yes_no("disable-thp", "yes", "immutable"),
    yes_no("cluster-allow-replica-migration", "yes"),
    yes_no("replica-announced", "yes"),
    yes_no("aof-disable-auto-gc", "no"),
    yes_no("replica-ignore-disk-write-errors", "no"),
    text("replica-announce-ip", "", alias="slave-announce-ip"),
    text("cluster-announce-ip", ""),
    text("cluster-config-file", "nodes.conf", "immutable"),
    declare("cluster-announce-hostname", AnyText(host_name), ""),
    declare("dbfilename", AnyText(file_name("dbfilename", "filename", empty=True)), "dump.rdb", "protected"),
    declare("appendfilename", AnyText(file_name("appendfilename", "filename")), "appendonly.aof", "immutable"),
    declare("appenddirname", AnyText(file_name("appenddirname", "dirname")), "appendonlydir", "immutable"),
    text("server_cpulist", "", "immutable"),
    text("bio_cpulist", "", "immutable"),
    text("aof_rewrite_cpulist", "", "immutable"),
    text("bgsave_cpulist", "", "immutable"),
    text("ignore-warnings", ""),
    choice("repl-diskless-load", "disabled", "disabled on-empty-db swapdb"),
    choice("oom-score-adj", "no", "no yes=relative absolute"),
    choice("sanitize-dump-payload", "no", "no yes clients"),
    choice("cluster-preferred-endpoint-type", "ip", "ip hostname unknown-endpoint"),
    choice("propagation-error-behavior", "ignore", "ignore panic panic-on-replicas"),
    declare("shutdown-on-sigint", ShutdownFlags(), "default"),
    declare("shutdown-on-sigterm", ShutdownFlags(), "default"),
    number("io-threads", 1, 1, 128, "immutable"),
    number("auto-aof-rewrite-percentage", 100, 0, INT_MAX),
    number("cluster-replica-validity-factor", 10, 0, INT_MAX, alias="cluster-slave-validity-factor"),
    number("list-max-listpack-size", -2, INT_MIN, INT_MAX, alias="list-max-ziplist-size"),
    number("cluster-migration-barrier", 1, 0, INT_MAX),
    number("active-defrag-cycle-min", 1, 1, 99),
    number("active-defrag-cycle-max", 25, 1, 99),
    number("active-defrag-threshold-lower", 10, 0, 1000),
    number("active-defrag-threshold-upper", 100, 0, 1000),
    number("replica-priority", 100, 0, INT_MAX, alias="slave-priority"),
    number("repl-diskless-sync-delay", 5, 0, INT_MAX),
    number("maxmemory-eviction-tenacity", 10, 0, 100),
    number("replica-announce-port", 0, 0, 65535, alias="slave-announce-port"),
    number("cluster-port", 0, 0, 65535, "immutable"),
    number("cluster-announce-bus-port", 0, 0, 65535),
    number("cluster-announce-port", 0, 0, 65535),
    number("cluster-announce-tls-port", 0, 0, 65535),
    number("list-compress-depth", 0, 0, INT_MAX),
    number("rdb-key-save-delay", 0, INT_MIN, INT_MAX, "hidden"),
    number("key-load-delay", 0, INT_MIN, INT_MAX, "hidden"),
    number("active-expire-effort", 1, 1, 10),
    number("watchdog-period", 0, 0, INT_MAX, "hidden"),
    number("shutdown-timeout", 10, 0, INT_MAX),
    number("repl-diskless-sync-max-replicas", 0, 0, INT_MAX),
    number("socket-mark-id", 0, 0, UINT_MAX, "immutable", unsigned=True),
    number("active-defrag-max-scan-fields", 1000, 1, LONG_MAX),
    number("cluster-node-timeout", 15000, 0, LONG_MAX),
    size("cluster-link-sendbuf-limit", "0", 0, ULONG_MAX, unsigned=True),
    size("active-defrag-ignore-bytes", "104857600", 1, LONG_MAX, unsigned=True),
    declare("maxmemory-clients", MemoryOrPercent(-100, LONG_MAX), "0"),
    size("auto-aof-rewrite-min-size", "67108864", 0, LONG_MAX),
    number("loading-process-events-interval-bytes", 2097152, 1024, INT_MAX, "hidden"),
    *KEPT_TLS,
    declare("hz", Frequency(0, INT_MAX), "10"),
    yes_no("set-proc-title", "yes", "immutable"),
    declare("proc-title-template", AnyText(title_template), "{title} {listen-addr} {server-mode}"),
    declare("save", SavePoints(), "3600 1 300 100 60 10000"),
    declare("oom-score-adj-values", OomScores(), "0 200 800"),
)

UNKNOWN_HERE = frozenset(
    """
    aof-load-corrupt-tail-max-size array-slice-size array-sparse-kmax array-sparse-kmin availability-zone
    cluster-announce-human-nodename cluster-compatibility-sample-ratio cluster-slot-migration-handoff-max-lag-bytes
    cluster-slot-migration-write-pause-timeout cluster-slot-stats-enabled commandlog-execution-slower-than
    commandlog-large-reply-max-len commandlog-large-request-max-len commandlog-reply-larger-than
    commandlog-request-larger-than commandlog-slow-execution-max-len dual-channel-replication-enabled
    events-per-io-thread extended-redis-compatibility hide-user-data-from-log import-mode io-threads-always-active
    key-memory-histograms lazyexpire-nested-arbitrary-keys list-max-ziplist-entries list-max-ziplist-value
    loadmodule loadmodule-ex locale-collate log-format log-timestamp-format lookahead lua-replicate-commands
    max-new-connections-per-cycle max-new-tls-connections-per-cycle min-string-size-avoid-copy-reply
    prefetch-batch-max-size primaryauth primaryuser rdb-version-check rename-command repl-mptcp
    replica-full-sync-buffer-limit set-max-listpack-entries set-max-listpack-value slowlog-entry-max-argc
    slowlog-entry-max-string-len stream-idmp-duration stream-idmp-maxsize unixsocketgroup
    vset-force-single-threaded-execution
    """.split()
)
"""Of later versions of Redis, of Valkey, and those that load and rename: a file that has them is read all the same."""
