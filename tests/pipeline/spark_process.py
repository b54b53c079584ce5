"""Processes of Spark's, each the head of a group that is killed with it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.pipeline.conftest import spark_environment


class SparkProcess:
    """One of them; what it prints is kept."""

    def __init__(self, words: list[str], **environment: str) -> None:
        self._output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            words,
            env=os.environ | spark_environment() | environment,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def output(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        """-9, and all its children with it."""
        if not self.is_over():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def python_workers(self) -> list[int]:
        """Of its executors: the children of those that fork."""
        parents = {pid: parent for pid, parent, _ in _processes()}
        found = []
        for pid, parent, words in _processes():
            if "pyspark.daemon" in words and "pyspark.daemon" in _words(parent) and self._has(pid, parents):
                found.append(pid)
        return found

    def _has(self, pid: int, parents: dict[int, int]) -> bool:
        while pid in parents:
            if pid == self.process.pid:
                return True
            pid = parents[pid]
        return False

    def clean_up(self) -> None:
        self.kill()
        self._output.close()


def _processes() -> list[tuple[int, int, str]]:
    """(pid, its parent, its command line) of all there are."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            found.append((int(folder.name), parent, _words(int(folder.name))))
    return found


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
