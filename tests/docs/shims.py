"""What a reader's shell finds besides the system's programs and the page's virtual environment.

The variables of the tests' own environment stay outside: a reader has no PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from blocks import ROOT

_PIP = """#!/bin/sh
echo "error: externally-managed-environment" >&2
exit 1
"""
"""pip of Debian, Ubuntu and Homebrew outside of a virtual environment."""
_NPM = """#!/bin/sh
exec "{python}" -E "{file}" "$@"
"""
_KEPT = ("LANG", "LC_ALL", "JAVA_HOME", "SPARK_SUBMIT_OPTS", "RLITE_TEST_CHROMIUM")


def environment(folder: Path) -> dict[str, str]:
    """The variables of a shell in `folder`, whose home is there, too."""
    tools = folder / ".tools"
    tools.mkdir()
    _program(tools / "pip", _PIP)
    _program(tools / "npm", _NPM.format(python=sys.executable, file=__file__))
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = os.pathsep.join((str(tools), *_system_path()))
    return {**kept, "PATH": path, "HOME": str(folder), "TERM": "dumb", "COLUMNS": "200"}


def _system_path() -> list[str]:
    """PATH without virtual environments, whose programs nobody has installed for the page."""
    folders = os.environ["PATH"].split(os.pathsep)
    return [folder for folder in folders if folder and not (Path(folder).parent / "pyvenv.cfg").exists()]


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def npm(words: list[str]) -> int:
    """`npm install NAME…`: links the packages and what they depend on, from those of compat_tests."""
    command, *waiting = words
    assert command == "install", command
    modules = Path("node_modules")
    modules.mkdir(exist_ok=True)
    while waiting:
        name = waiting.pop()
        source = ROOT / "compat_tests/node_modules" / name
        if not source.is_dir():
            print(f"{name} is not installed for the tests")
            return 3
        if not (modules / name).is_symlink():
            (modules / name).parent.mkdir(exist_ok=True)
            (modules / name).symlink_to(source)
            waiting += json.loads((source / "package.json").read_text()).get("dependencies", {})
    return 0


if __name__ == "__main__":
    sys.exit(npm(sys.argv[1:]))
