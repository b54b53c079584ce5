"""`python page_run.py PAGE`: runs the blocks of one page as its reader would, in an empty folder, with all ports free.

Nothing is there but what the page has installed and started. Most pages go on where docs/install.md ends: in a
virtual environment that has the package without extras. BARE are those that begin with nothing, and make that
environment. It then has what `pip install` has named on this page (readers_environment.py), and the package is the one
that the tests import: in a run of the tests on a wheel, the wheel.

Prints a line of JSON for each block: its line on the page, and what went wrong, or why it was skipped. `blocks.py` says
what a page may hold. Where the machine allows it the page has a network of its own, so that 6379 and 8080 are never
taken. Elsewhere it uses the machine's, one page at a time, and its blocks are skipped if one of these ports is taken.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import shims
from blocks import PROSE, ROOT, SAVED, Block, Skipped, blocks_of, commands_of, stays
from expected import matches
from readers_environment import ABSENT, OURS, ReadersEnvironment
from terminal import Terminal

BLOCK_PATIENCE_S = 300
CLONE_NEWNET = 0x40000000
PORTS = (6379, 8080)
BARE = ("README.md", "docs/install.md")
PROGRAMS = ("node", "npm", "redis-server")
"""What a machine may not have."""
SPARK = re.compile(r"^\s*(import|from) (pyspark|rlite_pubsub\.pipeline)\b", re.M)
_NEW_ENVIRONMENT = re.compile(r"python3 -m venv (\S+)")
_ACTIVATION = re.compile(r"(?:\.|source) (\S+)/bin/activate")
_CHANGE = re.compile(r"\bcd (\S+)$")


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

    def __init__(self, folder: Path, page: str) -> None:
        self._home = self._folder = folder
        self._terminals: list[Terminal] = []
        self._notebook: Notebook | None = None
        self._absent: str | None = None
        self._variables = shims.environment(folder)
        if page not in BARE:
            self._make(folder / ".venv").install(OURS)
            self._activate(folder / ".venv")

    def run(self, block: Block) -> None:
        """Raises AssertionError or what the block raises where it does not do what the page says."""
        if block.file:
            (self._folder / block.file).write_text(block.text)
        if block.language in SAVED:
            return
        try:
            printed = getattr(self, f"_run_{block.language}")(block)
            if block.prints is not None and not block.stays:
                assert matches(block.prints, printed), f"it printed\n{printed}\nand the page says\n{block.prints}"
        except AssertionError:
            if self._absent is not None:
                raise Skipped(self._absent) from None
            raise

    def close(self) -> None:
        if self._notebook:
            self._notebook.close()
        for terminal in self._terminals:
            terminal.close()
        self._terminals.clear()

    def _run_python(self, block: Block) -> str:
        if re.search(r"^(async )?def test_", block.text, re.M):
            (self._folder / "test_page.py").write_text(block.text)
            return self._do("python -m pytest -q -p no:cacheprovider test_page.py")
        file = self._folder / (block.file or "page.py")
        file.write_text(block.text)
        if SPARK.search(block.text):
            self._notebook = self._notebook or Notebook(self._folder, self._variables)
            return self._notebook.run(file)
        ended = subprocess.run(
            [self._found("python"), file.name], cwd=self._folder, env=self._variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=BLOCK_PATIENCE_S,
        )  # fmt: skip
        assert ended.returncode == 0, f"{block.name} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    def _run_bash(self, block: Block) -> str:
        first = block.prints if block.stays else None
        return "".join(self._command(command, first if stays(command) else None) for command in block.commands)

    def _run_console(self, block: Block) -> str:
        return "".join(self._command(*pair) for pair in commands_of(block.text, prompted=True))

    def _run_javascript(self, block: Block) -> str:
        self._need("node")
        file = self._folder / (block.file or "page.mjs")
        file.write_text(block.text)
        return self._do(f"node {file.name}")

    def _run_html(self, block: Block) -> str:
        from browser import text_of

        assert block.prints is not None, "a text block must follow, with what the page shows"
        return text_of(self._folder / (block.file or "page.html"), self._variables, block.prints)

    def _command(self, command: str, answer: str | None) -> str:
        self._need(command.split()[0])
        if made := _NEW_ENVIRONMENT.search(command):
            self._make(self._place(made[1]))
        if activated := _ACTIVATION.search(command):
            self._activate(self._place(activated[1]))
        if made or activated:
            return ""
        if stays(command):
            self._open(command, answer)
            return ""
        printed = self._do(command, answer)
        if answer is not None:
            assert matches(answer, printed), f"{command} printed\n{printed}\nand the page says\n{answer}"
        if changed := _CHANGE.search(command):
            self._folder = self._place(changed[1])
        return printed

    def _place(self, path: str) -> Path:
        """A path as the reader's shell takes it."""
        return self._folder / re.sub("^~", str(self._home), path)

    def _make(self, place: Path) -> ReadersEnvironment:
        made = ReadersEnvironment(place)
        made.make()
        return made

    def _activate(self, place: Path) -> None:
        self._variables["PATH"] = f"{place / 'bin'}{os.pathsep}{self._variables['PATH']}"
        self._variables["VIRTUAL_ENV"] = str(place)

    def _need(self, program: str) -> None:
        if program in PROGRAMS and not shutil.which(program):
            raise Skipped(f"{program} is not installed")

    def _found(self, program: str) -> str:
        found = shutil.which(program, path=self._variables["PATH"])
        assert found, f"{program} is not installed by this page"
        return found

    def _open(self, command: str, answer: str | None = None) -> None:
        terminal = Terminal(command, self._folder, self._variables)
        self._terminals.append(terminal)
        terminal.settle(answer)

    def _do(self, command: str, answer: str | None = None) -> str:
        terminal = Terminal(command, self._folder, self._variables)
        try:
            status, printed = terminal.finish(BLOCK_PATIENCE_S)
        finally:
            terminal.close()
        if status == ABSENT and re.match(r"(pip|npm) install", command):
            self._absent = printed.strip()
            raise Skipped(self._absent)
        assert status == 0, f"{command} ended with {status} and printed\n{printed}"
        return printed


class Notebook:
    """One Python of the reader's for all blocks with Spark: each start of Spark takes seconds."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        python = shutil.which("python", path=variables["PATH"])
        assert python, "python is not installed by this page"
        self._process = subprocess.Popen(
            [python, str(Path(__file__).with_name("notebook.py"))], cwd=folder, env=variables, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def run(self, file: Path) -> str:
        assert self._process.stdin and self._process.stdout
        print(file, file=self._process.stdin, flush=True)
        printed, raised = json.loads(self._process.stdout.readline())
        assert raised is None, raised
        return str(printed)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


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
    obstacle = None
    if not have_own_network():
        alone = open(Path(tempfile.gettempdir(), f"rlite-pages-{os.getuid()}.lock"), "w")
        fcntl.flock(alone, fcntl.LOCK_EX)
        obstacle = taken_port()
    with tempfile.TemporaryDirectory(prefix="rlite-page-", ignore_cleanup_errors=True) as place:
        reader = Reader(Path(place), sys.argv[1])
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
    answers.flush()


if __name__ == "__main__":
    main()
