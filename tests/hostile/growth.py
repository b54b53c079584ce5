"""What a command with many arguments costs: processor time of the server, for ours and for redis-server.

    python tests/hostile/growth.py [--arguments 50000] [--only WORD[,WORD...]] [--redis PATH] [--python PATH] [--heavy]

prints a table, the worst ratio first: command, n, ours, redis-server, ratio, and for ours how much more 2n cost than n.
Each figure is the least of several tries, which alternate. Where redis-server has no such command, growth alone counts.
With --heavy: a few commands of many megabytes. test_growth_of_cost.py goes over the forms with fewer arguments."""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from rlite_pubsub.protocol.rdb.envelope import length, seal, string

Words = list[bytes | str | int]
TRIES = 3
MOST_S = 3.0
"""What costs more is not tried again, nor with more arguments."""
IDLE_S, IDLE_SHARE = 0.05, 0.1
"""A server that uses less than this share of a processor for so long has finished what it did in the background."""


def many(count: int, form: str) -> list[bytes | str | int]:
    """The words of `form`, with `%d` replaced, for each number."""
    return [word.replace("%d", str(number)) for number in range(count) for word in form.split()]


FORMS: dict[str, Callable[[int], Words]] = {
    # connections and settings
    "CLIENT TRACKING PREFIX": lambda n: ["CLIENT", "TRACKING", "ON", "BCAST", *many(n, "PREFIX p%dx")],
    "CLIENT TRACKING nested": lambda n: ["CLIENT", "TRACKING", "ON", "BCAST", *many(n, "PREFIX p%dx"), "PREFIX", "p1"],
    "CLIENT KILL": lambda n: ["CLIENT", "KILL", *many(n, "ID 99%d")],
    "CLIENT LIST ID": lambda n: ["CLIENT", "LIST", "ID", *range(1000, 1000 + n)],
    "CLIENT NO-EVICT": lambda n: ["CLIENT", "NO-EVICT", *many(n, "%d")],
    "HELLO": lambda n: ["HELLO", "3", *many(n, "SETNAME n%d")],
    "ACL SETUSER keys": lambda n: ["ACL", "SETUSER", "u", *many(n, "~k%d")],
    "ACL SETUSER channels": lambda n: ["ACL", "SETUSER", "u2", *many(n, "&k%d")],
    "ACL SETUSER commands": lambda n: ["ACL", "SETUSER", "u3", *(["+get", "-set"] * (n // 2))],
    "ACL SETUSER first args": lambda n: ["ACL", "SETUSER", "u4", *many(n // 10, "+select|%d")],
    "ACL SETUSER categories": lambda n: ["ACL", "SETUSER", "u5", *(["+@read", "-@write"] * (n // 20))],
    "ACL SETUSER selectors": lambda n: ["ACL", "SETUSER", "u6", *(f"(~k{each} +get)" for each in range(n // 10))],
    "ACL SETUSER passwords": lambda n: ["ACL", "SETUSER", "u7", *many(n // 10, ">p%d")],
    "ACL DELUSER": lambda n: ["ACL", "DELUSER", *many(n, "nobody%d")],
    "ACL DRYRUN": lambda n: ["ACL", "DRYRUN", "default", "MGET", *many(n, "k%d")],
    "CONFIG GET": lambda n: ["CONFIG", "GET", *many(n, "none%d")],
    "CONFIG GET globs": lambda n: ["CONFIG", "GET", *many(n // 100, "*none%d*")],
    "CONFIG SET": lambda n: ["CONFIG", "SET", *many(n, "none%d x")],
    "CONFIG SET same": lambda n: ["CONFIG", "SET", *(["hz", "10"] * n)],
    "INFO": lambda n: ["INFO", *many(n, "none%d")],
    "COMMAND INFO": lambda n: ["COMMAND", "INFO", *many(n, "none%d")],
    "COMMAND DOCS": lambda n: ["COMMAND", "DOCS", *many(n, "none%d")],
    "COMMAND DOCS get": lambda n: ["COMMAND", "DOCS", *(["get"] * (n // 20))],
    "COMMAND INFO get": lambda n: ["COMMAND", "INFO", *(["get"] * (n // 20))],
    "COMMAND GETKEYS": lambda n: ["COMMAND", "GETKEYS", "MGET", *many(n, "k%d")],
    "COMMAND GETKEYSANDFLAGS": lambda n: ["COMMAND", "GETKEYSANDFLAGS", "MSET", *many(n // 2, "k%d v")],
    "LATENCY RESET": lambda n: ["LATENCY", "RESET", *many(n, "none%d")],
    "LATENCY HISTOGRAM": lambda n: ["LATENCY", "HISTOGRAM", *many(n, "none%d")],
    "MODULE LOADEX": lambda n: ["MODULE", "LOADEX", "/none", "ARGS", *many(n, "a%d")],
    "unknown command": lambda n: ["NONESUCH", *many(n, "a%d")],
    "PING": lambda n: ["PING", *many(n, "a%d")],
    "ECHO": lambda n: ["ECHO", "x" * n],
    # pub/sub
    "SUBSCRIBE": lambda n: ["SUBSCRIBE", *many(n, "c%d")],
    "PSUBSCRIBE": lambda n: ["PSUBSCRIBE", *many(n, "c%d*")],
    "SSUBSCRIBE": lambda n: ["SSUBSCRIBE", *many(n, "c%d")],
    "SUBSCRIBE same": lambda n: ["SUBSCRIBE", *(["c"] * n)],
    "UNSUBSCRIBE none": lambda n: ["UNSUBSCRIBE", *many(n, "c%d")],
    "PUNSUBSCRIBE none": lambda n: ["PUNSUBSCRIBE", *many(n, "c%d")],
    "PUBSUB NUMSUB": lambda n: ["PUBSUB", "NUMSUB", *many(n, "c%d")],
    "PUBSUB SHARDNUMSUB": lambda n: ["PUBSUB", "SHARDNUMSUB", *many(n, "c%d")],
    # scripts and transactions
    "EVAL keys": lambda n: ["EVAL", "return #KEYS", n, *many(n, "k%d")],
    "EVAL args": lambda n: ["EVAL", "return #ARGV", 0, *many(n, "k%d")],
    "EVAL returns": lambda n: ["EVAL", "return ARGV", 0, *many(n, "k%d")],
    "SCRIPT EXISTS": lambda n: ["SCRIPT", "EXISTS", *many(n, "k%d")],
    "FCALL": lambda n: ["FCALL", "none", n, *many(n, "k%d")],
    "WATCH": lambda n: ["WATCH", *many(n, "k%d")],
    "WATCH same": lambda n: ["WATCH", *(["k"] * n)],
    # keys
    "MGET": lambda n: ["MGET", *many(n, "k%d")],
    "MSET": lambda n: ["MSET", *many(n, "m%d v")],
    "MSETNX": lambda n: ["MSETNX", *many(n, "mn%d v")],
    "DEL": lambda n: ["DEL", *many(n, "k%d")],
    "UNLINK": lambda n: ["UNLINK", *many(n, "k%d")],
    "EXISTS": lambda n: ["EXISTS", *many(n, "k%d")],
    "TOUCH": lambda n: ["TOUCH", *many(n, "k%d")],
    "MIGRATE": lambda n: ["MIGRATE", "127.0.0.1", 1, "", 0, 10, "KEYS", *many(n, "k%d")],
    "SORT GET": lambda n: ["SORT", "none", *many(n, "GET p%d_*")],
    "SET options": lambda n: ["SET", "so", "v", *(["GET"] * n)],
    "BITOP": lambda n: ["BITOP", "AND", "bo", *many(n, "k%d")],
    "BITFIELD": lambda n: ["BITFIELD", "bf", *many(n, "INCRBY u8 %d 1")],
    "PFADD": lambda n: ["PFADD", "hll", *many(n, "e%d")],
    "PFCOUNT": lambda n: ["PFCOUNT", *many(n, "nohll%d")],
    "PFMERGE": lambda n: ["PFMERGE", "hll2", *many(n, "nohll%d")],
    "LPUSH": lambda n: ["LPUSH", "l", *many(n, "e%d")],
    "RPUSH": lambda n: ["RPUSH", "l2", *many(n, "e%d")],
    "BLPOP": lambda n: ["BLPOP", *many(n, "nol%d"), "0.01"],
    "LMPOP": lambda n: ["LMPOP", n, *many(n, "nol%d"), "LEFT"],
    "SADD": lambda n: ["SADD", "s", *many(n, "e%d")],
    "SADD numbers": lambda n: ["SADD", "si", *range(n)],
    "SREM": lambda n: ["SREM", "s", *many(n, "e%d")],
    "SMISMEMBER": lambda n: ["SMISMEMBER", "s", *many(n, "e%d")],
    "SINTER": lambda n: ["SINTER", *many(n, "nos%d")],
    "SUNION": lambda n: ["SUNION", *many(n, "nos%d")],
    "SDIFF": lambda n: ["SDIFF", *many(n, "nos%d")],
    "SINTERCARD": lambda n: ["SINTERCARD", n, *many(n, "nos%d")],
    "SUNIONSTORE": lambda n: ["SUNIONSTORE", "nn", *many(n, "nos%d")],
    "HSET": lambda n: ["HSET", "h", *many(n, "f%d v")],
    "HMGET": lambda n: ["HMGET", "h", *many(n, "f%d")],
    "HDEL": lambda n: ["HDEL", "h", *many(n, "f%d")],
    "ZADD": lambda n: ["ZADD", "z", *many(n, "%d e%d")],
    "ZMSCORE": lambda n: ["ZMSCORE", "z", *many(n, "e%d")],
    "ZREM": lambda n: ["ZREM", "z", *many(n, "e%d")],
    "ZUNION": lambda n: ["ZUNION", n, *many(n, "noz%d")],
    "ZUNION WEIGHTS": lambda n: ["ZUNION", n, *many(n, "noz%d"), "WEIGHTS", *many(n, "%d")],
    "ZINTER": lambda n: ["ZINTER", n, *many(n, "noz%d")],
    "ZDIFF": lambda n: ["ZDIFF", n, *many(n, "noz%d")],
    "ZMPOP": lambda n: ["ZMPOP", n, *many(n, "noz%d"), "MIN"],
    "GEOADD": lambda n: ["GEOADD", "g", *many(n, "1 1 e%d")],
    "GEOPOS": lambda n: ["GEOPOS", "g", *many(n, "e%d")],
    "GEOHASH": lambda n: ["GEOHASH", "g", *many(n, "e%d")],
    # streams
    "XADD": lambda n: ["XADD", "x", "*", *many(n, "f%d v")],
    "XDEL": lambda n: ["XDEL", "x", *many(n, "5-%d")],
    "XREAD": lambda n: ["XREAD", "STREAMS", *many(n, "nox%d"), *(["0"] * n)],
    "XREAD BLOCK": lambda n: ["XREAD", "BLOCK", 10, "STREAMS", *many(n, "nox%d"), *(["$"] * n)],
    "XREADGROUP": lambda n: ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "xs", *many(n, "nox%d"), *([">"] * (n + 1))],
    "XACK": lambda n: ["XACK", "xs", "g", *many(n, "5-%d")],
    "XCLAIM": lambda n: ["XCLAIM", "xs", "g", "c", 0, *many(n, "5-%d")],
    # ours
    "TOPIC.CONFIG": lambda n: ["TOPIC.CONFIG", "xs", *many(n, "MAXLEN %d")],
    "TOPIC.GROUP": lambda n: ["TOPIC.GROUP", "xs", "g", *many(n, "MAXDELIVERIES %d")],
    "TOPIC.APPEND": lambda n: ["TOPIC.APPEND", "ta", b"*2\r\n$1\r\n*\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n" * n],
    "TOPIC.STAGE": lambda n: ["TOPIC.STAGE", "app", 1, 0, 1, 0, "ts", n, b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n" * n],
    "TOPIC.COMMIT": lambda n: ["TOPIC.COMMIT", "app", 1, *many(n // 3, "%d 1 0")],
    "TOPIC.DEFER": lambda n: ["TOPIC.DEFER", "td", 99999999999999, *many(n // 2, "f%d v")],
    "TOPIC.UNDEFER": lambda n: ["TOPIC.UNDEFER", "td", *many(n, "99999999999999-%d")],
    "TOPIC.REQUEUE": lambda n: ["TOPIC.REQUEUE", "xs", "g", *many(n, "5-%d")],
    "TOPIC.SUBSCRIBE": lambda n: ["TOPIC.SUBSCRIBE", *many(n // 2, "nox%d 0")],
    "TOPIC.UNSUBSCRIBE": lambda n: ["TOPIC.UNSUBSCRIBE", *many(n, "nox%d")],
    "QUEUE.PUSH": lambda n: ["QUEUE.PUSH", "q", *many(n, "e%d")],
    "SUBSCRIBER.RATES": lambda n: ["SUBSCRIBER.RATES", *many(n, "c%d")],
    "SUBSCRIBER.LIST": lambda n: ["SUBSCRIBER.LIST", *many(n, "c%d")],
    "XDELEX": lambda n: ["XDELEX", "x", "KEEPREF", "IDS", n, *many(n, "5-%d")],
    "XACKDEL": lambda n: ["XACKDEL", "xs", "g", "KEEPREF", "IDS", n, *many(n, "5-%d")],
    "HGETDEL": lambda n: ["HGETDEL", "h", "FIELDS", n, *many(n, "f%d")],
    "HEXPIRE": lambda n: ["HEXPIRE", "h", 100, "FIELDS", n, *many(n, "f%d")],
}
PREPARED: dict[str, list[Words]] = {
    "UNSUBSCRIBE all": [],
}
SETUP: list[Words] = [
    ["FLUSHALL"],
    ["XADD", "xs", "1-1", "f", "v"],
    ["XGROUP", "CREATE", "xs", "g", "0"],
]
MANY_REQUESTS: dict[str, Callable[[int], list[Words]]] = {
    "MULTI with n SETs": lambda n: [["MULTI"], *(["SET", f"k{each}", "v"] for each in range(n)), ["EXEC"]],
    "MULTI with n PUBLISHs": lambda n: [["MULTI"], *(["PUBLISH", f"k{each}", "v"] for each in range(n)), ["EXEC"]],
    "SUBSCRIBE n, UNSUBSCRIBE": lambda n: [["SUBSCRIBE", *many(n, "c%d")], ["UNSUBSCRIBE"]],
    "PSUBSCRIBE n, PUNSUBSCRIBE": lambda n: [["PSUBSCRIBE", *many(n, "c%d*")], ["PUNSUBSCRIBE"]],
    "SSUBSCRIBE n, SUNSUBSCRIBE": lambda n: [["SSUBSCRIBE", *many(n, "c%d")], ["SUNSUBSCRIBE"]],
    "WATCH n, UNWATCH": lambda n: [["WATCH", *many(n, "k%d")], ["UNWATCH"]],
    "TRACKING n, OFF": lambda n: [
        ["CLIENT", "TRACKING", "ON", "BCAST", *many(n, "PREFIX p%dx")],
        ["CLIENT", "TRACKING", "OFF"],
    ],
    "n SUBSCRIBEs": lambda n: [["SUBSCRIBE", f"c{each}"] for each in range(n)],
    "n PSUBSCRIBEs": lambda n: [["PSUBSCRIBE", f"c{each}*"] for each in range(n)],
    "n WATCHes": lambda n: [["WATCH", f"k{each}"] for each in range(n)],
    "n CLIENT SETNAMEs": lambda n: [["CLIENT", "SETNAME", f"n{each}"] for each in range(n)],
    "n SELECTs": lambda n: [["SELECT", each % 16] for each in range(n)],
    "n SCRIPT LOADs": lambda n: [["SCRIPT", "LOAD", f"return {each}"] for each in range(n // 20)],
    "n ACL SETUSERs": lambda n: [["ACL", "SETUSER", "v", f"~k{each}"] for each in range(n // 50)],
}
HEAVY: dict[str, Callable[[int], list[Words]]] = {
    "SET of 100 MB": lambda _: [["SET", "large", b"v" * 100_000_000]],
    "SET of 100 MB over another": lambda _: [["SET", "large", b"v" * 100_000_000]] * 2,
    "SADD of a million": lambda _: [["SADD", "s", *many(1_000_000, "e%d")]],
    "MSET, DEL of a million keys": lambda _: [
        ["MSET", *many(1_000_000, "k%d v")],
        ["DEL", *many(1_000_000, "k%d")],
    ],
    "BLPOP of 100,000 keys": lambda _: [["BLPOP", *many(100_000, "nol%d"), "0.01"]],
    "RESTORE of a string, 2 MB of LZF": lambda _: [["RESTORE", "bomb", 0, seal(b"\0" + zeros(200_000_000))]],
    "RESTORE of a list, 2 MB of LZF": lambda _: [
        ["RESTORE", "bomb", 0, seal(b"\1" + length(2000) + zeros(100_000) * 2000)],
    ],
    "RESTORE of a list of a million": lambda _: [["RESTORE", "bomb", 0, seal(b"\1" + strings(1_000_000))]],
    "RESTORE of a set of a million": lambda _: [["RESTORE", "bomb", 0, seal(b"\2" + strings(1_000_000))]],
}


def zeros(count: int) -> bytes:
    """A string of about so many zero bytes, packed by LZF: 3 bytes stand for 264."""
    runs = count // 264
    packed = b"\0\0" + b"\xe0\xff\0" * runs
    return b"\xc3" + length(len(packed)) + length(1 + 264 * runs) + packed


def strings(count: int) -> bytes:
    return length(count) + b"".join([string(b"e%d" % each) for each in range(count)])


def requests_of(name: str, count: int) -> list[Words]:
    if name in HEAVY:
        return HEAVY[name](count)
    return MANY_REQUESTS[name](count) if name in MANY_REQUESTS else [FORMS[name](count)]


def names() -> Iterator[str]:
    yield from FORMS
    yield from MANY_REQUESTS


def packed(words: Words) -> bytes:
    found = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(found) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in found])


class Measured:
    """A server, whose processor time is looked at."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._clock = ~pid << 3 | 2  # clock_getcpuclockid(3): all threads of that process

    def cpu_s(self) -> float:
        return time.clock_gettime(self._clock)

    def rest(self) -> None:
        """Wait until nothing is done in the background."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            begun, before = time.monotonic(), self.cpu_s()
            time.sleep(IDLE_S)
            if self.cpu_s() - before < IDLE_SHARE * (time.monotonic() - begun):
                return

    def cost(self, requests: list[Words]) -> tuple[float, bytes]:
        """Processor seconds from the first byte until the server has answered a PING of another connection behind them;
        and the first answer's beginning."""
        data = b"".join(map(packed, requests))
        with socket.create_connection(("127.0.0.1", self.port)) as peer:
            self._say(peer, b"".join(map(packed, SETUP)), len(SETUP))
            self.rest()
            begun = self.cpu_s()
            mark = b"the-end-of-it"
            peer.settimeout(600)
            heard = b""
            first = b""
            peer.setblocking(False)
            left = memoryview(data + packed(["PING", mark]) + packed(["QUIT"]))
            until = time.monotonic() + 600
            while time.monotonic() < until:
                if left:
                    try:
                        left = left[peer.send(left) :]
                    except BlockingIOError:
                        pass
                    except OSError:
                        break
                try:
                    more = peer.recv(1 << 20)
                except BlockingIOError:
                    time.sleep(0.0005)
                    continue
                except OSError:
                    break
                if not more:
                    break
                first = first or more[:60]
                heard = (heard + more)[-200:]
            spent = self.cpu_s() - begun
        return spent, first

    def _say(self, peer: socket.socket, data: bytes, answers: int) -> None:
        peer.sendall(data)
        heard = b""
        while heard.count(b"\r\n") < answers:
            heard += peer.recv(65536)


def started(words: list[str], port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise RuntimeError(f"{words[0]} does not listen")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def compared(name: str, n: int, ours: Measured, redis: Measured) -> tuple[float, str]:
    """A row of the table, and its place: the ratio."""
    mine, theirs, twice = [], [], []
    said = told = b""
    is_quick = True
    for _ in range(TRIES):
        requests = requests_of(name, n)
        spent, said = ours.cost(requests)
        mine.append(spent)
        spent, told = redis.cost(requests)
        theirs.append(spent)
        is_quick = max(mine[0], theirs[0]) < MOST_S
        if is_quick and name not in HEAVY:
            twice.append(ours.cost(requests_of(name, 2 * n))[0])
        if not is_quick:
            break
    is_same = not told.startswith(b"-ERR unknown")
    ratio, growth = min(mine) / min(theirs), min(twice) / min(mine) if twice else 0.0
    is_slow = ratio > 3 if is_same else growth > 3
    differs = "" if said[:25] == told[:25] or not is_same else f" {said[:40]!r} / {told[:40]!r}"
    figures = [f"{min(mine) * 1000:.1f}", f"{min(theirs) * 1000:.1f}" if is_same else "–"]
    figures += [f"{ratio:.1f}" if is_same else "", f"{growth:.1f}" if twice else ""]
    row = f"| {' | '.join([name, str(n), *figures])} |{' !' if is_slow else ''}{differs}"
    return ratio if is_same else 0.0, row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arguments", type=int, default=50_000)
    parser.add_argument("--only", default="", help="forms whose names contain one of these words")
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--python", default=sys.executable, help="whose rlite_pubsub is measured")
    parser.add_argument("--heavy", action="store_true", help="a few commands of many megabytes")
    options = parser.parse_args()
    wanted = options.only.lower().split(",")
    chosen = [name for name in (HEAVY if options.heavy else names()) if any(word in name.lower() for word in wanted)]
    rows: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        ports = free_port(), free_port()
        ours_words = [options.python, "-m", "rlite_pubsub", "serve"]
        ours_words += ["--port", str(ports[0]), "--dir", f"{folder}/store"]
        redis_words = [options.redis, "--port", str(ports[1]), "--save", "", "--dir", folder]
        both = [started(ours_words, ports[0]), started(redis_words, ports[1])]
        ours, redis = (Measured(port, process.pid) for port, process in zip(ports, both, strict=True))
        try:
            for name in chosen:
                rows.append(compared(name, options.arguments, ours, redis))
                print(rows[-1][1], file=sys.stderr, flush=True)
        finally:
            for process in both:
                process.terminate()
                process.wait()
    print("| command | n | ours, ms | redis-server, ms | ratio | 2n to n |\n|---|--:|--:|--:|--:|--:|")
    print("\n".join([row for _, row in sorted(rows, reverse=True)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
