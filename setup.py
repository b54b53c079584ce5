"""Compiles the hot modules, and the one in C, when a wheel is built. All else about the package stands in setup.cfg.

The promise: a compiler never keeps anybody from installing. Where there is no C compiler, where Python's headers are
missing, where compiling fails, or with RLITE_PURE=1, the wheel is pure Python, and one line says so and why. An
editable install is never compiled, and nothing that is built stays in the tree: a compiled module beside its source
would hide every later change of it.

    python setup.py obstacle    # why nothing could be compiled here; prints nothing where it could
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path
from typing import Any

COMPILED = """
rlite_pubsub.build
rlite_pubsub.commands.collections.hash_counters
rlite_pubsub.commands.collections.hashes
rlite_pubsub.commands.collections.list_moves
rlite_pubsub.commands.collections.lists
rlite_pubsub.commands.collections.sets
rlite_pubsub.commands.connection.connection
rlite_pubsub.commands.connection.transactions
rlite_pubsub.commands.keys.generic
rlite_pubsub.commands.scripts.evaluating
rlite_pubsub.commands.sorted_sets.ranges
rlite_pubsub.commands.sorted_sets.removing
rlite_pubsub.commands.sorted_sets.sorted_sets
rlite_pubsub.commands.streams.read
rlite_pubsub.commands.streams.streams
rlite_pubsub.commands.streams.trim
rlite_pubsub.commands.strings.counters
rlite_pubsub.commands.strings.many
rlite_pubsub.commands.strings.strings
rlite_pubsub.commands.topics.append
rlite_pubsub.embedded.host
rlite_pubsub.embedded.line
rlite_pubsub.embedded.request
rlite_pubsub.embedded.service
rlite_pubsub.engine.arguments.floats
rlite_pubsub.engine.arguments.hash_lookup
rlite_pubsub.engine.arguments.integers
rlite_pubsub.engine.arguments.lookup
rlite_pubsub.engine.arguments.score_ranges
rlite_pubsub.engine.arguments.set_options
rlite_pubsub.engine.arguments.sorted_set_lookup
rlite_pubsub.engine.arguments.sorted_set_storing
rlite_pubsub.engine.arguments.stream_arguments
rlite_pubsub.engine.client
rlite_pubsub.engine.commit
rlite_pubsub.engine.counters
rlite_pubsub.engine.dispatch
rlite_pubsub.engine.engine
rlite_pubsub.engine.scripts.cache
rlite_pubsub.engine.scripts.conversions
rlite_pubsub.engine.scripts.run
rlite_pubsub.engine.scripts.runner
rlite_pubsub.engine.session
rlite_pubsub.engine.stats.latency
rlite_pubsub.engine.stats.slowlog
rlite_pubsub.engine.table
rlite_pubsub.engine.topics.short_append
rlite_pubsub.engine.topics.trimming
rlite_pubsub.engine.tracking.invalidation
rlite_pubsub.engine.tracking.notifications
rlite_pubsub.engine.turn
rlite_pubsub.engine.waits.blocking
rlite_pubsub.engine.waits.other_processes
rlite_pubsub.engine.waits.pause
rlite_pubsub.engine.waits.waiter
rlite_pubsub.keyspace.collection
rlite_pubsub.keyspace.hashes
rlite_pubsub.keyspace.hyperloglog
rlite_pubsub.keyspace.keyspace
rlite_pubsub.keyspace.lists
rlite_pubsub.keyspace.news
rlite_pubsub.keyspace.packing
rlite_pubsub.keyspace.part
rlite_pubsub.keyspace.records
rlite_pubsub.keyspace.sets
rlite_pubsub.keyspace.sorted_sets
rlite_pubsub.keyspace.times
rlite_pubsub.keyspace.topic.append
rlite_pubsub.keyspace.topic.hot_log
rlite_pubsub.keyspace.topic.nodes
rlite_pubsub.keyspace.topic.stretch
rlite_pubsub.keyspace.topic.topic
rlite_pubsub.keyspace.topic.trimming
rlite_pubsub.links.entry_bytes
rlite_pubsub.links.envelope
rlite_pubsub.links.held
rlite_pubsub.links.markers
rlite_pubsub.links.switchboard
rlite_pubsub.protocol.batch
rlite_pubsub.protocol.encoder
rlite_pubsub.protocol.entries
rlite_pubsub.protocol.parser
rlite_pubsub.pubsub.backlog
rlite_pubsub.pubsub.hub
rlite_pubsub.pubsub.kinds
rlite_pubsub.pubsub.neighbours
rlite_pubsub.pubsub.outbox
rlite_pubsub.pubsub.post
rlite_pubsub.pubsub.pressure
rlite_pubsub.pubsub.publish
rlite_pubsub.pubsub.route
rlite_pubsub.pubsub.session
rlite_pubsub.server.connection
rlite_pubsub.server.connections
rlite_pubsub.server.secure_connection
rlite_pubsub.server.secure_wire
rlite_pubsub.server.turns
rlite_pubsub.storage.agenda
rlite_pubsub.storage.checkpoints.checkpoint
rlite_pubsub.storage.checkpoints.deltas
rlite_pubsub.storage.checkpoints.safety
rlite_pubsub.storage.databases
rlite_pubsub.storage.environment
rlite_pubsub.storage.journal.journal
rlite_pubsub.storage.journal.recording
rlite_pubsub.storage.journal.shared_commit
rlite_pubsub.storage.keys.digests
rlite_pubsub.storage.keys.elements
rlite_pubsub.storage.keys.fields
rlite_pubsub.storage.keys.key_records
rlite_pubsub.storage.keys.members
rlite_pubsub.storage.keys.order
rlite_pubsub.storage.keys.ranks
rlite_pubsub.storage.keys.rows
rlite_pubsub.storage.keys.scores
rlite_pubsub.storage.keys.words
rlite_pubsub.storage.mail.letters
rlite_pubsub.storage.mail.mailboxes
rlite_pubsub.storage.pages.tree
rlite_pubsub.storage.topics.chunks
rlite_pubsub.storage.topics.entry_ids
rlite_pubsub.storage.turn
""".split()
"""What each request passes. A module belongs here if scripts/bench shows that it pays; rlite_pubsub.build always does,
because it knows by itself whether it was compiled."""

WRITTEN_IN_C = {
    "rlite_pubsub.protocol._bulk_array": "rlite_pubsub/protocol/_bulk_array.c",
    "rlite_pubsub.protocol._cut": "rlite_pubsub/protocol/_cut.c",
    "rlite_pubsub.engine.scripts._crossing": "rlite_pubsub/engine/scripts/_crossing.c",
    "rlite_pubsub.server._wires": "rlite_pubsub/server/_wires.c",
    "rlite_pubsub.storage.keys._key_bytes": "rlite_pubsub/storage/keys/_key_bytes.c",
}
"""What is C in itself, and for Linux only; a pure package does without (encoder.py, batch.py, crossing.py, wires.py and
key_bytes.py beside them)."""

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


_HERE = Path(__file__).resolve().parent
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
        extensions = mypycify(arguments, opt_level="2", debug_level="0", multi_file=True, target_dir=str(folder))
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
