"""The options of `rlite-pubsub cli`, as redis-cli names them; what it does not do is refused in words."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any, NoReturn

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.place import DEFAULT_HOST, DEFAULT_PORT
from rlite_pubsub.protocol import inline
from rlite_pubsub.version import __version__

_DEBUGGER = "scripts are not debugged here; redis.log in a script writes into the server's log"
REFUSED = {
    "--cluster": "there is no cluster manager; `rlite-pubsub shard` looks after a sharded store",
    "--lru-test": "there is no such test; `rlite-pubsub top` and INFO stats count hits and misses of your own traffic",
    "--functions-rdb": "use --rdb, which has the functions and the keys, or FUNCTION DUMP",
    "--ldb": _DEBUGGER,
    "--ldb-sync-mode": _DEBUGGER,
    "--tls-ciphersuites": "Python's TLS chooses these by itself; --tls-ciphers is for TLS 1.2 and below",
}
"""Options of redis-cli that are not here, and what to do instead."""


class _Refusal(argparse.Action):
    """An option that is known, and not obeyed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        parser.error(f"{option_string}: {REFUSED[str(option_string)]}")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add them to a parser."""
    parser.usage = "rlite-pubsub cli [OPTIONS] [COMMAND [ARGUMENT ...]]"
    parser.description = (
        "Send one command, or the lines of standard input, or open a prompt with history, completion and help."
    )
    parser.conflict_handler = "resolve"  # -h is the host, as in redis-cli
    _add_place(parser)
    _add_identity(parser)
    _add_tls(parser)
    _add_form(parser)
    _add_modes(parser)
    _add_request(parser)
    parser._has_negative_number_optionals.clear()  # -2 and -3 are options, and yet -r takes a -1
    parser.add_argument("--verbose", action="store_true", help=argparse.SUPPRESS)  # of redis-cli's cluster manager
    parser.add_argument("--version", action="version", version=f"rlite-pubsub {__version__}")
    for name in REFUSED:
        parser.add_argument(name, nargs="*", action=_Refusal, help=argparse.SUPPRESS)


def _add_place(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Where")
    group.add_argument("-h", dest="host", default=DEFAULT_HOST, metavar="HOST", help=f"(default: {DEFAULT_HOST})")
    group.add_argument(
        "-p", dest="port", type=int, default=DEFAULT_PORT, metavar="PORT", help=f"(default: {DEFAULT_PORT})"
    )
    group.add_argument(
        "-s", dest="socket", metavar="SOCKET|STORE", help="a unix socket, or a store's folder, which needs no server"
    )
    group.add_argument("-u", dest="uri", metavar="URL", help="redis://USER:PASSWORD@HOST:PORT/DB, rediss:// for TLS")
    group.add_argument("-n", dest="database", type=int, default=0, metavar="DB", help="the database (default: 0)")
    group.add_argument("-c", dest="follows", action="store_true", help="follow MOVED and ASK to the server of a key")
    group.add_argument("--create", action="store_true", help="make the store if the folder has none")


def _add_identity(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("As whom")
    group.add_argument(
        "-a", "--pass", dest="password", metavar="PASSWORD", help="REDISCLI_AUTH in the environment is safer"
    )
    group.add_argument("--user", metavar="NAME", help="the ACL user; needs a password")
    group.add_argument("--askpass", action="store_true", help="ask for the password at the terminal")
    group.add_argument("--no-auth-warning", action="store_true", help="do not warn of a password in the arguments")


def _add_tls(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("TLS")
    group.add_argument("--tls", action="store_true", help="connect with TLS")
    group.add_argument("--sni", metavar="HOST", help="the host name to ask for (SNI)")
    group.add_argument("--cacert", metavar="FILE", help="trust these certificates (default: those this machine trusts)")
    group.add_argument("--cacertdir", metavar="FOLDER", help="trust the certificates in this folder")
    group.add_argument("--insecure", action="store_true", help="accept any certificate")
    group.add_argument("--cert", metavar="FILE", help="the client's certificate")
    group.add_argument("--key", metavar="FILE", help="the client's private key")
    group.add_argument("--tls-ciphers", metavar="LIST", help="ciphers of TLS 1.2 and below, as OpenSSL lists them")


def _add_form(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Output")
    form = group.add_mutually_exclusive_group()
    for name, shown_as, meaning in (
        ("--raw", "raw", "print replies as they are (default unless the output is a terminal)"),
        ("--no-raw", "terminal", "print replies as for a terminal: quoted, numbered, with types"),
        ("--csv", "csv", "print replies as CSV"),
        ("--json", "json", "print replies as JSON; asks for RESP3 unless you say -2"),
        ("--quoted-json", "quoted-json", "the same, with all that is not ASCII escaped"),
    ):
        form.add_argument(name, dest="form", action="store_const", const=shown_as, help=meaning)
    group.add_argument("-d", dest="delimiter", default="\\n", metavar="TEXT", help="what --raw puts between elements")
    group.add_argument("-D", dest="end", default="\\n", metavar="TEXT", help="what --raw puts after each reply")
    group.add_argument("--show-pushes", type=_yes_or_no, metavar="yes|no", help="print RESP3's pushes (default: yes)")
    group.add_argument("-2", dest="resp2", action="store_true", help="speak RESP2 (default)")
    group.add_argument("-3", dest="resp3", action="store_true", help="speak RESP3")
    group.add_argument("-e", dest="fails", action="store_true", help="exit with 1 if a command answers with an error")


def _add_modes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Instead of a command")
    mode = group.add_mutually_exclusive_group()
    for name, meaning in (
        ("scan", "list all keys, by SCAN"),
        ("bigkeys", "find the keys with the most elements"),
        ("memkeys", "find the keys that take the most memory"),
        ("hotkeys", "find the keys that are used most; needs a maxmemory-policy with lfu"),
        ("stat", "print a line of figures every second"),
        ("latency", "measure how long a PING takes"),
        ("latency-history", "the same, with a new line every 15 seconds"),
        ("latency-dist", "show how many PINGs took how long, as colors, every second"),
        ("pipe", "send standard input as it is, and count the replies"),
        ("replica", "print every write as the server sends it to its replicas"),
    ):
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=meaning)
    mode.add_argument("--rdb", metavar="FILE", help="write the server's keys into an RDB file (-: standard output)")
    mode.add_argument(
        "--intrinsic-latency",
        type=int,
        metavar="SECONDS",
        help="measure how long this machine keeps a program waiting; needs no server",
    )
    pattern = group.add_mutually_exclusive_group()
    pattern.add_argument("--pattern", type=os.fsencode, metavar="PATTERN", help="only these keys (default: all)")
    pattern.add_argument(
        "--quoted-pattern", dest="pattern", type=unquoted, metavar="PATTERN", help="the same, in quotes"
    )
    group.add_argument("--memkeys-samples", type=int, metavar="COUNT", help="elements of a key that --memkeys looks at")
    group.add_argument(
        "--pipe-timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="give up after this long without a reply (default: 30; 0: never)",
    )


def _add_request(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("What is sent")
    group.add_argument("-r", dest="repeat", type=int, default=1, metavar="TIMES", help="repeat it; -1: forever")
    group.add_argument(
        "-i", dest="interval", type=float, default=0.0, metavar="SECONDS", help="wait this long in between; see --stat"
    )
    source = group.add_mutually_exclusive_group()
    source.add_argument("-x", dest="reads_last", action="store_true", help="take the last argument from standard input")
    source.add_argument(
        "-X",
        dest="reads_tag",
        type=os.fsencode,
        metavar="TAG",
        help="take the argument that is TAG from standard input",
    )
    group.add_argument("--quoted-input", action="store_true", help='arguments in quotes are unquoted: "a\\x00b"')
    group.add_argument("--eval", dest="script", metavar="FILE", help="a Lua script; its arguments: KEY ... , ARG ...")
    group.add_argument("words", nargs=argparse.REMAINDER, type=os.fsencode, metavar="COMMAND", help="and its arguments")


def _yes_or_no(word: str) -> bool:
    if word[:1].lower() not in ("y", "n"):
        raise argparse.ArgumentTypeError(f"{word!r} is neither yes nor no")
    return word[0].lower() == "y"


def unquoted(word: str | bytes) -> bytes:
    """Return a word without its quotes, if it begins with one. Raises CommandFailed where they do not match."""
    data = os.fsencode(word)
    if data[:1] not in (b'"', b"'"):
        return data
    found = inline.split(data)
    if not found or len(found) != 1:
        raise CommandFailed(f"Invalid quoted string: {os.fsdecode(data)}")
    return found[0]
