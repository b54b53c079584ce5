"""`rlite-pubsub cli [options] [command [argument ...]]`: one command, lines of standard input, or a prompt.

The options, the output and the exit status are redis-cli's. `-s` takes a unix socket as there, or a store's folder:
then the same commands are executed without a server.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import ConnectionLost, Dialogue
from rlite_pubsub.cli.prompt.key_survey import find_hot_keys, list_keys, survey
from rlite_pubsub.cli.prompt.latency import measure_machine, watch_latency, watch_spectrum
from rlite_pubsub.cli.prompt.line import InvalidLine, Line
from rlite_pubsub.cli.prompt.options import declare, unquoted
from rlite_pubsub.cli.prompt.piping import transfer
from rlite_pubsub.cli.prompt.place import place_of
from rlite_pubsub.cli.prompt.replica import fetch_rdb, log_writes
from rlite_pubsub.cli.prompt.rolling import roll
from rlite_pubsub.cli.prompt.shown import Printer
from rlite_pubsub.cli.prompt.wire import Wire
from rlite_pubsub.cli.secrets import hide
from rlite_pubsub.extras import missing
from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.replies import Error


def cli(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    declare(parser)
    parser.set_defaults(run=_run, usage_status=1, draws=True)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.password is not None:
        hide([os.fsencode(arguments.password)])
        if not arguments.no_auth_warning:
            print(
                "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.",
                file=sys.stderr,
            )
    if arguments.intrinsic_latency is not None:
        measure_machine(arguments.intrinsic_latency)
        return 0
    printer = Printer(arguments.form, _unescaped(arguments.delimiter), _unescaped(arguments.end))
    has_mode = arguments.mode is not None or arguments.rdb is not None
    words = [] if has_mode else _words(arguments)
    if not has_mode and not words and sys.stdin.isatty():
        return _prompt(arguments, printer)
    shows = arguments.show_pushes is not False
    dialogue = Dialogue(place_of(arguments), printer.put if shows else lambda reply: None)
    if not has_mode and not words:
        return _lines(dialogue, printer)
    dialogue.connect(listens=False)
    try:
        if has_mode:
            return _instead(dialogue, printer, arguments)
        return _repeat(dialogue, printer, words, arguments)
    except BrokenPipeError:  # who reads the output is gone: the command is over
        raise
    except (ConnectionLost, OSError) as failure:
        raise CommandFailed(f"{dialogue.place.shown}: {failure}") from failure
    finally:
        dialogue.close()


def _words(arguments: argparse.Namespace) -> list[bytes]:
    """Return the command. Raises CommandFailed."""
    words: list[bytes] = arguments.words
    if arguments.quoted_input:
        words = [unquoted(word) for word in words]
    if arguments.reads_last:
        words = [*words, sys.stdin.buffer.read()]
    if arguments.reads_tag is not None:
        if arguments.reads_tag not in words:
            raise CommandFailed("Using -X option but stdin tag not match.")
        read = sys.stdin.buffer.read()
        words = [read if word == arguments.reads_tag else word for word in words]
    return _of_script(arguments.script, words) if arguments.script is not None else words


def _instead(dialogue: Dialogue, printer: Printer, arguments: argparse.Namespace) -> int:
    """Do what the options ask for instead of a command; return the exit status."""
    mode, interval_s, pattern = arguments.mode, arguments.interval, arguments.pattern
    if mode is None:
        fetch_rdb(_wire_of_server(dialogue), arguments.rdb)
    elif mode == "scan":
        list_keys(dialogue, pattern, interval_s, quotes=printer.is_for_terminal)
    elif mode == "bigkeys":
        survey(dialogue, pattern, interval_s, by_memory=False)
    elif mode == "memkeys":
        survey(dialogue, pattern, interval_s, by_memory=True, samples=arguments.memkeys_samples)
    elif mode == "hotkeys":
        find_hot_keys(dialogue, pattern, interval_s)
    elif mode == "stat":
        roll(dialogue, interval_s or 1.0)
    elif mode == "pipe":
        return transfer(dialogue.wire(), sys.stdin.buffer, arguments.pipe_timeout)
    elif mode == "replica":
        log_writes(_wire_of_server(dialogue))
    elif mode == "latency-dist":
        watch_spectrum(dialogue, interval_s)
    else:
        watch_latency(dialogue, printer.form, interval_s, keeps_history=mode == "latency-history")
    return 0


def _wire_of_server(dialogue: Dialogue) -> Wire:
    if dialogue.place.store is not None:
        raise CommandFailed("only a server has replicas; `rlite-pubsub export` writes a store's keys into an RDB file")
    return dialogue.wire()


def _prompt(arguments: argparse.Namespace, printer: Printer) -> int:
    try:
        from rlite_pubsub.cli.prompt.interactive import Prompt
    except ModuleNotFoundError as failure:
        if (failure.name or "").partition(".")[0] != "prompt_toolkit":
            raise
        raise CommandFailed(missing("the prompt", "cli")) from failure
    return Prompt(place_of(arguments), printer).run()


def _lines(dialogue: Dialogue, printer: Printer) -> int:
    """Each line of standard input is a command. As with redis-cli, what fails is reported, the next line connects
    again, and the exit status is 0. Raises CommandFailed if a store cannot be opened."""
    try:
        for text in sys.stdin.buffer:
            try:
                line = Line(text)
                if line.leaves:
                    break
                _obey(line, dialogue, printer)
            except InvalidLine as failure:
                print(failure, flush=True)
            except BrokenPipeError:
                raise
            except CommandFailed as failure:
                if dialogue.place.store is not None:
                    raise
                print(failure, file=sys.stderr, flush=True)
            except (ConnectionLost, OSError) as failure:
                print(f"Error: {failure}", file=sys.stderr, flush=True)
    finally:
        dialogue.close()
    return 0


def _obey(line: Line, dialogue: Dialogue, printer: Printer) -> None:
    """Do what a line of standard input says."""
    moved = line.moved(dialogue.place)
    if moved is not None:
        dialogue.go(moved, listens=False)
        return
    for _ in range(line.times if line.words else 0):
        if not dialogue.is_connected:
            dialogue.connect(listens=False)
        _send(dialogue, printer, line.words, fails=False)


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


def _repeat(dialogue: Dialogue, printer: Printer, words: list[bytes], arguments: argparse.Namespace) -> int:
    """One command, as often as it is to be sent."""
    left: int = arguments.repeat
    code = 0
    while left:
        code = _send(dialogue, printer, words, fails=arguments.fails)
        if code:
            break
        left -= 1
        if left and arguments.interval:
            time.sleep(arguments.interval)
    return code


def _of_script(path: str, words: list[bytes]) -> list[bytes]:
    """EVAL of the script in a file; keys stand before a lone comma, other arguments behind it. Raises CommandFailed."""
    try:
        with open(path, "rb") as file:
            script = file.read()
    except OSError as failure:
        raise CommandFailed(f"Can't open file '{path}': {failure.strerror}") from failure
    keys = words.index(b",") if b"," in words else len(words)
    return [b"EVAL", script, b"%d" % keys, *words[:keys], *words[keys + 1 :]]


def _unescaped(word: str) -> bytes:
    """Replace the escapes of a newline, a tab and so on, as the shell passes them on."""
    return (inline.split(b'"%b"' % os.fsencode(word)) or [os.fsencode(word)])[0]
