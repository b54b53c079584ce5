"""Every program of docs/frameworks.md runs, and so do the first lines of the README."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
BLOCK = r"```python\n(.*?)```"
PROGRAMS = re.findall(BLOCK, (ROOT / "docs/frameworks.md").read_text(), re.S)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_page_runs(number: int, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[number])
    ended = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr


def test_the_first_lines_of_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    """Worker and client are two processes, and there is no server."""
    page = (ROOT / "README.md").read_text()
    begins = page.index("# tasks.py")
    (tmp_path / "tasks.py").write_text(page[begins : page.index("```", begins)])
    commands = re.findall(r"^    (.+?)  +# in ", page[begins : page.index("\n## ", begins)], re.M)
    assert len(commands) == 2, commands
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    words = {"shell": True, "cwd": tmp_path, "env": environment, "start_new_session": True}
    with subprocess.Popen(commands[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **words) as worker:
        try:
            asked = subprocess.run(commands[1], capture_output=True, text=True, timeout=PATIENCE_S, **words)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
    assert asked.stdout == "3\n", asked.stderr
