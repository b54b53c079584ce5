"""What a reader's shell finds besides the package's own program: a pip that installs nothing, and scripts/serve.

The environment that runs the tests has all that pages install. So `pip install` only proves that what it names can be
installed: this package, with extras that setup.cfg has.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from pathlib import Path

from blocks import ROOT

_PIP = """#!{python}
import re, sys
extras = {extras!r}
command, *words = sys.argv[1:]
assert command == "install", command
for word in words:
    found = re.fullmatch(r"(?:\\.|rlite-pubsub)(?:\\[([a-z_,]+)\\])?", word)
    assert found, f"pip install {{word}} is not about this package"
    for extra in (found[1] or "").split(","):
        assert extra in ("", *extras), f"there is no extra {{extra}}"
"""
_SERVE = """#!/bin/sh
exec rlite-pubsub serve "$@"
"""
_KEPT = ("PATH", "LANG", "LC_ALL", "JAVA_HOME", "RLITE_TEST_CHROMIUM", "PYTHONPATH", "NODE_PATH")


def environment(folder: Path) -> dict[str, str]:
    """The variables of a shell in `folder`, whose home is there, too."""
    tools = folder / ".tools"
    tools.mkdir()
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = sorted(setup["options.extras_require"])
    _program(tools / "pip", _PIP.format(python=sys.executable, extras=extras))
    (folder / "scripts").mkdir()
    _program(folder / "scripts/serve", _SERVE)
    path = os.pathsep.join((str(tools), str(Path(sys.executable).parent), os.environ["PATH"]))
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = os.pathsep.join(filter(None, (str(folder), str(ROOT), kept.get("PYTHONPATH"))))
    return {**kept, "PATH": path, "HOME": str(folder), "TERM": "dumb", "COLUMNS": "200", "PYTHONPATH": paths}


def _program(path: Path, text: str) -> None:
    path.write_text(re.sub(r"^\n", "", text))
    path.chmod(0o755)
