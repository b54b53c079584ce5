"""`rlite-pubsub cli [options] [command [argument ...]]`: one command, lines of standard input, or a prompt.

The options, the output and the exit status are redis-cli's. `-s` takes a unix socket as there, or a store's folder:
then the same commands are executed without a server.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import ConnectionLost, Dialogue
from rlite_pubsub.cli.prompt.key_survey import list_keys, survey
from rlite_pubsub.cli.prompt.piping import transfer
from rlite_pubsub.cli.prompt.place import DEFAULT_HOST, DEFAULT_PORT, place_of
from rlite_pubsub.cli.prompt.rolling import roll
from rlite_pubsub.cli.prompt.shown import Printer
from rlite_pubsub.cli.secrets import hide
from rlite_pubsub.extras import missing
from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.replies import Error


def cli(parser: argparse.ArgumentParser) -> None:
    """Declares its options, as redis-cli names them."""
    parser.usage = "rlite-pubsub cli [OPTIONS] [COMMAND [ARGUMENT ...]]"
    parser.description = (
        "Send one command, or the lines of standard input, or open a prompt with history, completion and help."
    )
    parser.conflict_handler = "resolve"  # -h is the host, as in redis-cli
    _add_place(parser)
    _add_identity(parser)
    _add_tls(parser)
    _add_form(parser)
    running = parser.add_argument_group("What is sent")
    running.add_argument("-r", dest="repeat", type=int, default=1, metavar="TIMES", help="this many times; -1 for ever")
    running.add_argument(
        "-i", dest="interval", type=float, default=0.0, metavar="SECONDS", help="pause between two; for --stat, too"
    )
    running.add_argument("-x", dest="reads_last", action="store_true", help="the last argument is standard input")
    running.add_argument("--quoted-input", action="store_true", help='"a\\x00b" among the arguments is unquoted')
    running.add_argument("--eval", dest="script", metavar="FILE", help="a Lua script; its arguments: KEY ... , ARG ...")
    _add_modes(parser)
    running.add_argument("words", nargs=argparse.REMAINDER, type=os.fsencode, metavar="COMMAND", help="with arguments")
    parser._has_negative_number_optionals.clear()  # -2 and -3 are options, and yet -r takes a -1
    parser.set_defaults(run=_run)


def _add_modes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Instead of a command")
    mode = group.add_mutually_exclusive_group()
    mode.add_argument("--scan", dest="mode", action="store_const", const=_scan, help="list all keys, by SCAN")
    mode.add_argument(
        "--bigkeys", dest="mode", action="store_const", const=_bigkeys, help="find the keys with the most elements"
    )
    mode.add_argument(
        "--memkeys", dest="mode", action="store_const", const=_memkeys, help="find the keys that take the most memory"
    )
    mode.add_argument(
        "--stat", dest="mode", action="store_const", const=_stat, help="print a line of figures every second"
    )
    mode.add_argument("--pipe", dest="mode", action="store_const", const=_pipe, help="send standard input as it is")
    pattern = group.add_mutually_exclusive_group()
    pattern.add_argument("--pattern", type=os.fsencode, metavar="PATTERN", help="only these keys (default: all)")
    pattern.add_argument(
        "--quoted-pattern", dest="pattern", type=_unquoted, metavar="PATTERN", help="the same, in quotes"
    )
    group.add_argument("--memkeys-samples", type=int, metavar="COUNT", help="elements of a key that --memkeys looks at")
    group.add_argument(
        "--pipe-timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="give up after this long without a reply (default: 30; 0: never)",
    )


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
    group.add_argument("--create", action="store_true", help="make the store if the folder has none")


def _add_identity(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("As whom")
    group.add_argument(
        "-a", "--pass", dest="password", metavar="PASSWORD", help="REDISCLI_AUTH in the environment is safer"
    )
    group.add_argument("--user", metavar="NAME", help="the ACL user; needs a password")
    group.add_argument("--askpass", action="store_true", help="ask for the password at the terminal")
    group.add_argument("--no-auth-warning", action="store_true", help="do not warn of -a")


def _add_tls(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("TLS")
    group.add_argument("--tls", action="store_true", help="connect with TLS")
    group.add_argument("--sni", metavar="HOST", help="the name that the server is called by")
    group.add_argument("--cacert", metavar="FILE", help="certificates to trust (default: what this machine trusts)")
    group.add_argument("--cacertdir", metavar="FOLDER", help="a folder of such certificates")
    group.add_argument("--insecure", action="store_true", help="accept any certificate")
    group.add_argument("--cert", metavar="FILE", help="the certificate to show")
    group.add_argument("--key", metavar="FILE", help="its private key")


def _add_form(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("How it is shown")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--raw", dest="form", action="store_const", const="raw", help="as sent (default without a terminal)"
    )
    form.add_argument("--no-raw", dest="form", action="store_const", const="terminal", help="as for a terminal")
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="as CSV")
    form.add_argument("--json", dest="form", action="store_const", const="json", help="as JSON, in RESP3 unless -2")
    group.add_argument("-d", dest="delimiter", default="\\n", metavar="TEXT", help="between elements of --raw")
    group.add_argument("-D", dest="end", default="\\n", metavar="TEXT", help="between replies of --raw")
    group.add_argument("-2", dest="resp2", action="store_true", help="speak RESP2 (default)")
    group.add_argument("-3", dest="resp3", action="store_true", help="speak RESP3")
    group.add_argument("-e", dest="fails", action="store_true", help="exit with 1 where a command answers an error")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.password is not None:
        hide([os.fsencode(arguments.password)])
        if not arguments.no_auth_warning:
            print(
                "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.",
                file=sys.stderr,
            )
    printer = Printer(arguments.form, _unescaped(arguments.delimiter), _unescaped(arguments.end))
    words: list[bytes] = arguments.words
    if arguments.quoted_input:
        words = [_unquoted(word) for word in words]
    if arguments.reads_last:
        words = [*words, sys.stdin.buffer.read()]
    if arguments.script is not None:
        words = _of_script(arguments.script, words)
    mode: Callable[[Dialogue, Printer, argparse.Namespace], int] | None = arguments.mode
    if mode is None and not words and sys.stdin.isatty():
        return _prompt(arguments, printer)
    dialogue = Dialogue(place_of(arguments), printer.put)
    dialogue.connect(listens=False)
    try:
        if mode is not None:
            return mode(dialogue, printer, arguments)
        if not words:
            return _lines(dialogue, printer, fails=arguments.fails)
        left = arguments.repeat
        code = 0
        while left:
            code = _send(dialogue, printer, words, fails=arguments.fails)
            if code:
                break
            left -= 1
            if left and arguments.interval:
                time.sleep(arguments.interval)
        return code
    except BrokenPipeError:  # who reads the output is gone: the command is over
        raise
    except (ConnectionLost, OSError) as failure:
        raise CommandFailed(f"{dialogue.place.shown}: {failure}") from failure
    finally:
        dialogue.close()


def _prompt(arguments: argparse.Namespace, printer: Printer) -> int:
    try:
        from rlite_pubsub.cli.prompt.interactive import Prompt
    except ModuleNotFoundError as failure:
        if (failure.name or "").partition(".")[0] != "prompt_toolkit":
            raise
        raise CommandFailed(missing("the prompt", "cli")) from failure
    return Prompt(place_of(arguments), printer).run()


def _lines(dialogue: Dialogue, printer: Printer, *, fails: bool) -> int:
    """Each line of standard input is a command; what is not, is reported and skipped."""
    for line in sys.stdin.buffer:
        words = inline.split(line)
        if words is None:
            print("Invalid argument(s)", flush=True)
        elif words and words[0].lower() in (b"quit", b"exit"):
            break
        elif words:
            code = _send(dialogue, printer, words, fails=fails)
            if code:
                return code
    return 0


def _send(dialogue: Dialogue, printer: Printer, words: list[bytes], *, fails: bool) -> int:
    """One command. A subscriber goes on until interrupted."""
    if words[0].lower() in (b"subscribe", b"psubscribe", b"ssubscribe") and not printer.is_raw:
        print("Reading messages... (press Ctrl-C to quit)", flush=True)
    for reply in dialogue.ask(words):
        if isinstance(reply, Error) and fails:
            print(reply.decode(errors="backslashreplace"), file=sys.stderr)
            return 1
        printer.put(reply, words)
    if dialogue.has_subscribed:
        dialogue.wait()
    return 0


def _scan(dialogue: Dialogue, printer: Printer, arguments: argparse.Namespace) -> int:
    list_keys(dialogue, arguments.pattern, arguments.interval, quotes=printer.is_for_terminal)
    return 0


def _bigkeys(dialogue: Dialogue, printer: Printer, arguments: argparse.Namespace) -> int:
    survey(dialogue, arguments.pattern, arguments.interval, by_memory=False)
    return 0


def _memkeys(dialogue: Dialogue, printer: Printer, arguments: argparse.Namespace) -> int:
    survey(dialogue, arguments.pattern, arguments.interval, by_memory=True, samples=arguments.memkeys_samples)
    return 0


def _stat(dialogue: Dialogue, printer: Printer, arguments: argparse.Namespace) -> int:
    roll(dialogue, arguments.interval or 1.0)
    return 0


def _pipe(dialogue: Dialogue, printer: Printer, arguments: argparse.Namespace) -> int:
    return transfer(dialogue.wire(), sys.stdin.buffer, arguments.pipe_timeout)


def _of_script(path: str, words: list[bytes]) -> list[bytes]:
    """EVAL of the script in a file; keys stand before a lone comma, other arguments behind it. Raises CommandFailed."""
    try:
        with open(path, "rb") as file:
            script = file.read()
    except OSError as failure:
        raise CommandFailed(f"Can't open file '{path}': {failure.strerror}") from failure
    keys = words.index(b",") if b"," in words else len(words)
    return [b"EVAL", script, b"%d" % keys, *words[:keys], *words[keys + 1 :]]


def _unquoted(word: str | bytes) -> bytes:
    """A word that begins with a quote is one of a line of input; any other is as it stands."""
    data = os.fsencode(word)
    if data[:1] not in (b'"', b"'"):
        return data
    found = inline.split(data)
    if not found or len(found) != 1:
        raise CommandFailed(f"Invalid quoted string: {os.fsdecode(data)}")
    return found[0]


def _unescaped(word: str) -> bytes:
    """What stands for a newline, a tab and so on, as the shell passes it on."""
    return (inline.split(b'"%b"' % os.fsencode(word)) or [os.fsencode(word)])[0]
