"""The window's core in C, with threads under ThreadSanitizer, and with writers that are killed at each step."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import rlite_pubsub.storage.window as package

HARNESS = Path(__file__).with_name("harness.c")


def built(folder: Path, sanitizer: str) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("nothing can be compiled here")
    probe, made = folder / "probe.c", folder / "harness"
    probe.write_text("int main(void) { return 0; }")
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-pthread"]
    able = subprocess.run(["cc", *flags, probe, "-o", folder / "probe"], capture_output=True).returncode == 0
    if not able or subprocess.run([folder / "probe"], capture_output=True).returncode:
        pytest.skip(f"this compiler has no -fsanitize={sanitizer}, or this kernel refuses it")
    warnings = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warnings, *flags, "-I", package.__path__[0], HARNESS, "-o", made], check=True)
    return made


def outcome(command: list[Path | str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_readers_without_a_lock_see_every_snapshot_whole(tmp_path: Path, sanitizer: str) -> None:
    assert "commits, read by 3 threads" in outcome([built(tmp_path, sanitizer), "threads", tmp_path / "log"])


def test_writer_killed_at_any_step_loses_nothing_acknowledged(tmp_path: Path) -> None:
    assert "320 kills" in outcome([built(tmp_path, "address,undefined"), "kills", tmp_path / "log"])
