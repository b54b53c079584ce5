"""Compiles the modules that rlite_pubsub/build.py names when a wheel is built. All else about the package stands in
setup.cfg.

The promise: a compiler never keeps anybody from installing. Where there is no C compiler, where Python's headers are
missing, where compiling fails, or with RLITE_PURE=1, the wheel is pure Python, and one line says so and why. An
editable install is never compiled, and nothing that is built stays in the tree: a compiled module beside its source
would hide every later change of it.

    python setup.py obstacle    # why nothing could be compiled here; prints nothing where it could
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_TABLES = runpy.run_path(str(_HERE / "rlite_pubsub" / "build.py"))
COMPILED: list[str] = _TABLES["COMPILED"]
WRITTEN_IN_C = {name: name.replace(".", "/") + ".c" for name in _TABLES["WRITTEN_IN_C"]}

_JOBS = os.cpu_count() or 1

_COMPILER = ["-Wno-error", "-fvisibility=hidden"]
"""A later compiler may warn of more; and what nobody outside calls can be called straight, and inlined."""

_MYPY = ["--ignore-missing-imports", "--no-site-packages", "--config-file="]
"""What is compiled must not depend on which other packages are installed, and on what they say of their types."""


def obstacle() -> str | None:
    """Why nothing can be compiled here."""
    if os.environ.get("RLITE_PURE", "0") not in ("", "0"):
        return "RLITE_PURE is set"
    if sys.implementation.name != "cpython":
        return "this is not CPython"
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "Python's headers (Python.h) are missing"
    return None


_LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*\])\((?![a-z]+:|#)([^)\s]+)\)")


def long_description() -> str:
    """The README, whose links into the tree lead to where the tree is published: an index shows it beside no files."""
    metadata = ConfigParser(interpolation=None)
    metadata.read(_HERE / "setup.cfg", encoding="utf-8")
    home = metadata["metadata"]["url"]

    def absolute(link: re.Match[str]) -> str:
        is_picture, text, target = link.groups()
        return f"{is_picture}{_LINK.sub(absolute, text)}({home}/{'raw' if is_picture else 'blob'}/main/{target})"

    return _LINK.sub(absolute, (_HERE / "README.md").read_text(encoding="utf-8"))


def _build(folder: Path, compiled: bool) -> None:
    """A wheel; what is needed to make it goes into `folder`."""
    from setuptools import setup

    extensions = []
    if compiled:
        from mypyc.build import mypycify
        from setuptools import Extension

        files = [module.replace(".", "/") + ".py" for module in COMPILED]
        arguments = [*_MYPY, f"--cache-dir={folder / 'cache'}", *files]
        extensions = mypycify(
            arguments,
            opt_level="2",
            debug_level="0",
            multi_file=True,
            target_dir=str(folder),
            group_name="rlite_pubsub",  # else a digest, which may begin with a digit: no module has such a name
        )
        for extension in extensions:
            extension.extra_compile_args = [*extension.extra_compile_args, *_COMPILER]  # it was one list for all
            extension.sources = _joined([Path(source) for source in extension.sources])
        if sys.platform == "linux":
            extensions += [Extension(name, [source]) for name, source in WRITTEN_IN_C.items()]
        _compile_side_by_side()
    setup(
        long_description=long_description(),
        ext_modules=extensions,
        options={"build": {"build_base": str(folder / "base")}, "build_ext": {"parallel": _JOBS}},
    )


def _joined(sources: list[Path]) -> list[str]:
    """The same source in as many files as there are jobs: it is the headers of a hundred files that take long."""
    if len(sources) <= _JOBS:
        return list(map(str, sources))
    share = sum(source.stat().st_size for source in sources) / _JOBS
    parts: list[list[Path]] = [[] for _ in range(_JOBS)]
    read = 0
    for source in sources:
        parts[min(int(read / share), _JOBS - 1)].append(source)
        read += source.stat().st_size
    joined = []
    for number, part in enumerate(parts):
        file = part[0].with_name(f"part-{number}.c")
        file.write_text("".join(f'#include "{source}"\n' for source in part))
        joined.append(str(file))
    return joined


def _compile_side_by_side() -> None:
    """Has the files of one extension compiled by as many compilers as there are jobs: by itself only whole extensions
    are, and nearly all of ours is in one."""
    from distutils.ccompiler import CCompiler  # setuptools' own, as mypyc takes it

    compile_in_turn = CCompiler.compile

    def compile_all(self: Any, sources: list[str], *arguments: Any, **options: Any) -> list[str]:
        with ThreadPoolExecutor(_JOBS) as pool:
            done = pool.map(lambda source: compile_in_turn(self, [source], *arguments, **options), sources)
            return [file for files in done for file in files]

    CCompiler.compile = compile_all


def main() -> None:
    """What pip calls, by way of setuptools."""
    if "obstacle" in sys.argv:
        print(obstacle() or "")
        return
    if "bdist_wheel" not in sys.argv:
        from setuptools import setup

        setup(long_description=long_description())
        return
    why = obstacle()
    with tempfile.TemporaryDirectory(prefix="rlite-build-") as folder:
        if why is None:
            try:
                _build(Path(folder, "compiled"), compiled=True)
                return
            except (Exception, SystemExit) as failure:
                why = f"compiling failed: {failure!r}"
        print(f"rlite-pubsub: pure Python, because {why}", file=sys.stderr)
        _build(Path(folder, "pure"), compiled=False)


if __name__ == "__main__":
    main()
