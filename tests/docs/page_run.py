"""`python page_run.py PAGE`: runs the blocks of one page as its reader would, in an empty folder, with all ports free.

Prints a line of JSON for each block: its line on the page, and what went wrong, or why it was skipped. `blocks.py` says
what a page may hold. Where the machine allows it the page has a network of its own, so that 6379 and 8080 are never
taken. Elsewhere it uses the machine's, and its blocks are skipped if one of these ports is taken.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import fcntl
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import shims
from blocks import PROSE, ROOT, SAVED, Block, blocks_of
from expected import matches
from terminal import Terminal, commands_of, serves

BLOCK_PATIENCE_S = 300
CLONE_NEWNET = 0x40000000
PORTS = (6379, 8080)
OPTIONAL = {
    "apscheduler", "celery", "channels", "django", "dramatiq", "flask", "flask_limiter", "flask_session", "huey",
    "huey_consumer", "kombu", "node", "redis-server", "rq",
}  # fmt: skip
"""Modules and programs that only `scripts/test --frameworks` installs, or that a machine may not have."""
ASKS_FOR_A_SERVER = re.compile(r"redis-cli|localhost|127\.0\.0\.1|redis\.Redis\((?!port)|redis://")


class Skipped(Exception):
    """The block needs what this machine has not got."""


def have_own_network() -> bool:
    """Whether this process now has a network of its own, with the loopback only."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        IFF_UP, SIOCSIFFLAGS = 1, 0x8914
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    return True


def taken_port() -> int | None:
    for port in PORTS:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return port
    return None


class Reader:
    """One reader with one page, an empty folder, and as many terminals as it takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._terminals: list[Terminal] = []
        self._absent: dict[str, Skipped] = {}
        self._environment = shims.environment(folder)
        os.environ.update(self._environment)

    def run(self, block: Block) -> None:
        """Raises AssertionError or what the block raises where it does not do what the page says."""
        if block.file:
            (self._folder / block.file).write_text(block.text)
        if block.language in SAVED:
            return
        try:
            self._run(block)
        except Skipped as reason:
            if block.file:
                self._absent[Path(block.file).stem] = reason
            raise

    def _run(self, block: Block) -> None:
        text = block.text
        if ASKS_FOR_A_SERVER.search(text) and not re.search(r"\bserve\b", text) and not self._terminals:
            self._open("rlite-pubsub serve --http-port 8080  # in a terminal")
        printed = getattr(self, f"_run_{block.language}")(block)
        if block.prints is not None:
            assert matches(block.prints, printed), f"it printed\n{printed}\nand the page says\n{block.prints}"

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        self._terminals.clear()

    def _run_python(self, block: Block) -> str:
        _need(_imported(block.text))
        if re.search(r"^(async )?def test_", block.text, re.M):
            file = self._folder / "test_page.py"
            file.write_text(block.text)
            return self._do(f"{sys.executable} -m pytest -q -p no:cacheprovider {file}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            names = {"__name__": "__main__", "__file__": block.file or "page.py"}
            exec(compile(block.text, block.name, "exec"), names)  # noqa: S102
        return printed.getvalue()

    def _run_bash(self, block: Block) -> str:
        return "".join(self._command(command, None) for command, _ in commands_of(block.text, prompted=False))

    def _run_console(self, block: Block) -> str:
        return "".join(self._command(*pair) for pair in commands_of(block.text, prompted=True))

    def _run_javascript(self, block: Block) -> str:
        _need({"node"})
        file = self._folder / "page.mjs"
        file.write_text(block.text)
        modules = self._folder / "node_modules"
        if not modules.exists():
            modules.symlink_to(ROOT / "compat_tests/node_modules")
        return self._do(f"node {file.name}")

    def _run_html(self, block: Block) -> str:
        from browser import text_of

        assert block.prints is not None, "a text block must follow, with what the page shows"
        return text_of(self._folder / (block.file or "page.html"), self._environment, block.prints)

    def _command(self, command: str, answer: str | None) -> str:
        program = command.split()[0]
        if program in OPTIONAL:
            _need({program})
        for module, reason in self._absent.items():
            if re.search(rf"\b(import|from) {module}\b", command):
                raise reason
        if serves(command):
            self._stop_serving()
        if re.search(r"#.*\bterminal\b", command):
            self._open(command, answer)
            return ""
        printed = self._do(command, answer)
        if answer is not None:
            assert matches(answer, printed), f"{command} printed\n{printed}\nand the page says\n{answer}"
        return printed

    def _stop_serving(self) -> None:
        """A reader who starts another server stops the one before."""
        for terminal in [one for one in self._terminals if serves(one.command)]:
            terminal.close()
            self._terminals.remove(terminal)

    def _open(self, command: str, answer: str | None = None) -> None:
        terminal = Terminal(command, self._folder, self._environment)
        self._terminals.append(terminal)
        terminal.settle(answer)

    def _do(self, command: str, answer: str | None = None) -> str:
        terminal = Terminal(command, self._folder, self._environment)
        try:
            status, printed = terminal.finish(BLOCK_PATIENCE_S)
        finally:
            terminal.close()
        assert status == 0, f"{command} ended with {status} and printed\n{printed}"
        return printed


def _imported(text: str) -> set[str]:
    """The top names of the modules that a program imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _need(names: set[str]) -> None:
    for name in sorted(names & OPTIONAL):
        if name not in sys.modules and importlib.util.find_spec(name) is None and shutil.which(name) is None:
            raise Skipped(f"{name} is not installed")


@contextlib.contextmanager
def _patience(block: Block) -> Iterator[None]:
    def tell(*_: object) -> None:
        raise TimeoutError(f"it has not ended after {BLOCK_PATIENCE_S} s")

    signal.signal(signal.SIGALRM, tell)
    signal.alarm(BLOCK_PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    obstacle = None if have_own_network() else taken_port()
    with tempfile.TemporaryDirectory(prefix="rlite-page-") as place:
        os.chdir(place)
        sys.path.insert(0, place)
        reader = Reader(Path(place))
        try:
            for block in blocks_of(ROOT / sys.argv[1]):
                answer: dict[str, object] = {"line": block.line}
                if block.obstacle or block.language in PROSE:
                    continue
                if obstacle:
                    answer["skipped"] = f"port {obstacle} is taken, and there is no network of its own to be had"
                else:
                    try:
                        with _patience(block):
                            reader.run(block)
                    except Skipped as reason:
                        answer["skipped"] = str(reason)
                    except BaseException:
                        answer["failed"] = traceback.format_exc()
                print(json.dumps(answer), file=answers, flush=True)
        finally:
            reader.close()
            os.chdir("/")
    answers.flush()
    os._exit(0)  # what a block has left running (threads, Spark) has nothing more to say


if __name__ == "__main__":
    main()
