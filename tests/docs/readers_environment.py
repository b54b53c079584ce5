"""The virtual environment of one page's reader: what the page has installed, and nothing else.

It is made in milliseconds and without a network, because what `pip install` names comes as links from the environment
that runs the tests: the named distributions with the extras that were named, and what these require, as their metadata
says. So a module that some other distribution has brought along is missing here, as it is missing at a reader's.

`python readers_environment.py PLACE install WORDS…` is the reader's pip.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from importlib.metadata import Distribution
from pathlib import Path

OURS = "rlite-pubsub"
ABSENT = 3
"""Exit status of the reader's pip where the tests' environment has not got what it is to install."""


class NotInstalled(Exception):
    """The tests' environment has no such distribution."""


class ReadersEnvironment:
    """A virtual environment at a place. Its bin/pip, bin/python and bin/activate do what a reader expects."""

    def __init__(self, place: Path) -> None:
        self.bin = place / "bin"
        self.python = self.bin / "python"
        self._place = place
        self._site = place / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

    def make(self) -> None:
        """An environment with pip and no packages."""
        self.bin.mkdir(parents=True)
        self._site.mkdir(parents=True)
        base = Path(sys.executable).resolve()
        (self._place / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
        for name in ("python", "python3"):
            (self.bin / name).symlink_to(base)
        _program(self.bin / "pip", f'#!/bin/sh\nexec "{sys.executable}" -E "{__file__}" "{self._place}" "$@"\n')

    def install(self, requirement: str) -> None:
        """As `pip install REQUIREMENT`, where `.` is a clone of ours. Raises NotInstalled, and ValueError for an extra
        that there is not."""
        from packaging.requirements import Requirement  # brought by pytest, which runs the tests

        waiting = [Requirement(re.sub(r"^\.(?=\[|$)", OURS, requirement))]
        done: set[tuple[str, frozenset[str]]] = set()
        while waiting:
            wanted = waiting.pop()
            key = (wanted.name, frozenset(wanted.extras))
            if key in done:
                continue
            done.add(key)
            found = _found(wanted.name)
            if found.name == OURS and (unknown := wanted.extras - set(found.metadata.get_all("Provides-Extra") or [])):
                raise ValueError(f"{OURS} has no extra of exactly this name, and pip 23 takes no other: {unknown}")
            self._link(found)
            for line in found.requires or []:
                one = Requirement(line)
                contexts = ({"extra": extra} for extra in ("", *wanted.extras))
                if one.marker is None or any(map(one.marker.evaluate, contexts)):
                    waiting.append(one)

    def _link(self, found: Distribution) -> None:
        """Its packages and modules, its metadata and its programs."""
        folder = Path(str(found.locate_file(""))).resolve()
        files = found.files or []
        tops = {file.parts[0] for file in files} - {"..", "__pycache__"}
        sources = {top: folder / top for top in tops}
        if found.name == OURS:
            tree = _imported_from()
            if tree != folder:
                sources = {top: path for top, path in sources.items() if top.endswith(".dist-info")}
                sources |= {name: tree / name for name in ("rlite_pubsub", "pyspark_rlite.py")}
        for top, source in sources.items():
            if not (self._site / top).is_symlink():
                (self._site / top).symlink_to(source)
        for entry in found.entry_points.select(group="console_scripts"):
            lines = (f"#!{self.python}", "import sys", f"from {entry.module} import {entry.attr}")
            _program(self.bin / entry.name, "\n".join((*lines, f"sys.exit({entry.attr}())", "")))
        for file in files:
            is_script = file.parts[0] == ".." and file.parent.name == "bin"
            if is_script and not os.path.lexists(self.bin / file.name):
                (self.bin / file.name).symlink_to(Path(str(found.locate_file(file))).resolve())


def _found(name: str) -> Distribution:
    """What is installed; a tree of sources may have metadata of its own, which name no installed files."""
    for found in importlib.metadata.distributions(name=name):
        if found.read_text("RECORD") is not None:
            return found
    raise NotInstalled(f"{name} is not installed in the tests' environment")


def _imported_from() -> Path:
    """The folder from which the tests import our package: of an installed wheel, or a tree of sources."""
    found = importlib.util.find_spec("rlite_pubsub")
    assert found and found.origin
    return Path(found.origin).resolve().parents[1]


def _program(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def main() -> int:
    place, command, *words = sys.argv[1:]
    if command != "install":
        print(f"the reader's pip only installs, and was told to {command}", file=sys.stderr)
        return 1
    reader = ReadersEnvironment(Path(place))
    try:
        for word in words:
            reader.install(word)
    except NotInstalled as absent:
        print(absent)
        return ABSENT
    return 0


if __name__ == "__main__":
    sys.exit(main())
