"""The prompt: lines are commands; help, hints and completion are the server's own COMMAND DOCS.

Promises:
 - Messages and pushes are shown above the prompt as they come, and what is being typed stays.
 - What has a password in it is not kept in the history.
 - A connection that is gone is made again by the next command, and no command is sent twice: where it is not known
   whether one was executed, that is said. A server that is not there yet is waited for in the same way.
 - Ctrl-C takes back one thing: what waits, or what is being typed, or the subscriptions, or else the prompt.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import ConnectionLost, Dialogue
from rlite_pubsub.cli.prompt.line import InvalidLine, Line
from rlite_pubsub.cli.prompt.manual import Manual, ManualEntry
from rlite_pubsub.cli.prompt.place import Destination
from rlite_pubsub.cli.prompt.shown import Printer
from rlite_pubsub.protocol.replies import Error

SLOW_S = 0.5
BOTTOM = "Tab completes, help explains, Ctrl-D leaves"
BOTTOM_SUBSCRIBED = "Messages are shown as they come; Ctrl-C unsubscribes from all"
HISTORY = "RLITE_CLI_HISTORY"
"""The environment's variable for the file of the history."""
DEFAULT_HISTORY = "~/.rlite_pubsub_history"
INTRODUCTION = """\
help COMMAND     what a command does and takes; help SET, help CONFIG GET
help @GROUP      the commands of a group: {groups}
connect HOST PORT    goes to another server
clear, quit      and a number before a command sends it that many times
Tab completes, the arrows and Ctrl-R search the history
Ctrl-C ends what waits; at the prompt it empties the line, or unsubscribes from all, or else leaves"""


class Prompt:
    """The prompt at one place."""

    def __init__(self, place: Destination, printer: Printer) -> None:
        self._printer = printer
        self._dialogue = Dialogue(place, lambda reply: self._print_above(printer.text([], reply)))
        self._manual = Manual(Error(b""))

    def run(self) -> int:
        """Run until the user leaves. Raises CommandFailed if there is no store."""
        with patch_stdout():
            if not self._connect() and self._dialogue.place.store is not None:
                return 1
            lines: PromptSession[str] = PromptSession(
                history=_History(os.environ.get(HISTORY) or os.path.expanduser(DEFAULT_HISTORY)),
                completer=_Words(self),
                complete_while_typing=False,
                bottom_toolbar=lambda: self.hint(lines.default_buffer.text) or self._bottom(),
                reserve_space_for_menu=4,
            )
            while True:
                try:
                    line = lines.prompt(self._where())
                except KeyboardInterrupt:
                    if lines.default_buffer.text:
                        continue
                    if not self._dialogue.has_subscribed:
                        break
                    self._connect()
                    continue
                except EOFError:
                    break
                if not self._obey(line):
                    break
        self._dialogue.close()
        return 0

    @property
    def manual(self) -> Manual:
        """The server's documentation of its commands."""
        return self._manual

    def hint(self, line: str) -> str:
        """Return the arguments of the command being typed."""
        entry = self._manual.entry_of(line.split())
        return f"{entry.name} {entry.syntax}" if entry is not None else ""

    def _bottom(self) -> str:
        return BOTTOM_SUBSCRIBED if self._dialogue.has_subscribed else BOTTOM

    def _where(self) -> str:
        dialogue = self._dialogue
        if not dialogue.is_connected:
            return "not connected> "
        database = f"[{dialogue.database}]" if dialogue.database else ""
        state = "(TX)" if dialogue.is_in_transaction else "(subscribed mode)" if dialogue.has_subscribed else ""
        return f"{dialogue.place.shown}{database}{state}> "

    def _obey(self, line: str) -> bool:
        """Obey a word of the prompt; return False if it says to leave."""
        try:
            said = Line(line.encode(errors="surrogateescape"))
            moved = said.moved(self._dialogue.place)
        except (InvalidLine, CommandFailed) as failure:
            print(failure)
            return True
        if said.leaves:
            return False
        word = said.words[0].lower() if said.words else b""
        if moved is not None:
            self._connect(moved)
        elif word == b"clear":
            print("\x1b[H\x1b[2J", end="", file=sys.__stdout__, flush=True)
        elif word in (b"help", b"?"):
            self._help([each.decode(errors="replace") for each in said.words[1:]])
        elif word:
            for _ in range(said.times):
                if not self._send(said.words):
                    break
        return True

    def _send(self, words: list[bytes]) -> bool:
        """Send a command; return whether it was answered."""
        if not self._dialogue.is_connected and not self._connect():
            return False
        began_s = time.monotonic()
        try:
            for reply in self._dialogue.ask(words):
                self._print(self._printer.text(words, reply))
        except KeyboardInterrupt:
            if words[0].lower() != b"monitor":
                print("interrupted: what was under way may have been executed")
            self._connect()
            return False
        except (ConnectionLost, OSError) as failure:
            self._dialogue.close()
            print(f"Error: {failure or 'connection lost'}: it is not known whether it was executed")
            self._connect()
            return False
        took_s = time.monotonic() - began_s
        if took_s >= SLOW_S and self._printer.is_for_terminal:
            print(f"({took_s:.2f}s)")
        return True

    def _connect(self, place: Destination | None = None) -> bool:
        """Connect anew, or to another place; say why that fails."""
        dialogue = self._dialogue
        try:
            if place is not None:
                dialogue.go(place, listens=True)
            else:
                dialogue.connect(listens=True)
            if place is not None or not self._manual.entries:
                self._manual = Manual(next(dialogue.ask([b"COMMAND", b"DOCS"])))
        except (CommandFailed, ConnectionLost, OSError) as failure:
            print(failure)
            return False
        return True

    def _help(self, words: list[str]) -> None:
        if not words:
            print(INTRODUCTION.format(groups=" ".join(self._manual.groups)))
            return
        found = self._manual.about(words)
        if not found:
            is_known = bool(self._manual.entries)
            print(f"there is no command {' '.join(words)}" if is_known else "the server does not answer COMMAND DOCS")
        for each in found:
            print(_shown(each, with_group=not words[0].startswith("@")))

    @staticmethod
    def _print(text: bytes) -> None:
        """Wait until the terminal has taken it: a terminal that does not read holds up MONITOR, and not the memory."""
        terminal = sys.__stdout__ or sys.stdout
        terminal.write(text.decode(errors="backslashreplace"))
        terminal.flush()

    @staticmethod
    def _print_above(text: bytes) -> None:
        """Above the line that is being typed, by another thread."""
        sys.stdout.write(text.decode(errors="backslashreplace"))
        sys.stdout.flush()


def _shown(entry: ManualEntry, *, with_group: bool) -> str:
    lines = [f"\n  {entry.name} {entry.syntax}".rstrip(), f"  summary: {entry.summary}", f"  since: {entry.since}"]
    return "\n".join([*lines, *([f"  group: {entry.group}\n"] if with_group else [])])


class _Words(Completer):
    """Completes commands, subcommands and the words that they take."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        last = document.get_word_before_cursor(WORD=True)
        words = before[: len(before) - len(last)].split()
        for word in self._prompt.manual.completions(words, last):
            yield Completion(word, start_position=-len(last))


class _History(FileHistory):
    """The history file, readable for its owner alone, and without lines that have a password."""

    def __init__(self, path: str) -> None:
        Path(path).touch(mode=0o600)
        super().__init__(path)

    def store_string(self, string: str) -> None:
        if not _is_secret(string):
            super().store_string(string)


def _is_secret(line: str) -> bool:
    try:
        words = [word.lower() for word in shlex.split(line)]
    except ValueError:
        words = line.lower().split()
    if not words:
        return False
    if words[0] == "auth" or words[:2] == ["acl", "setuser"]:
        return True
    if words[:2] == ["config", "set"]:
        return any(word in ("requirepass", "masterauth", "masteruser", "tls-key-file-pass") for word in words[2:])
    return words[0] in ("hello", "migrate") and any(word in ("auth", "auth2") for word in words[1:])
