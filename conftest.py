"""What holds for all tests, those of compat_tests too."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import installed
import progress
import pytest
from hypothesis import settings

LONGEST = (
    "tests/pipeline/test_exactly_once.py",
    "tests/pipeline/",
    "tests/scripts/test_bench.py",
    "tests/docs/test_blocks.py",
    "tests/history/test_history.py",
    "compat_tests/test_master.py",
    "compat_tests/test_sharded_moves.py",
    "compat_tests/test_spread_queues.py",
    "tests/gateway/test_openapi.py",
    "tests/soak/test_soak.py",
    "tests/faults/test_power_cut.py",
    "tests/server/test_durable.py",
    "tests/server/test_full_store.py",
    "tests/server/test_spilling.py",
    "tests/server/test_commons.py",
    "tests/cli/test_prompt.py",
    "tests/gateway/test_event_bus.py",
    "tests/cli/test_cli_tail.py",
    "tests/queues/test_member_down.py",
    "tests/server/test_tls.py",
    "tests/server/test_durable_ends.py",
)
"""What takes longest in one worker of pytest-xdist, and therefore begins first: begun last, it would keep the other
workers waiting. A room stays in one worker, because its tests share what is dear, a session of Spark. Where a run knows
how long each test took the last time (RLITE_TEST_TIMES), it goes by that."""


settings.register_profile("of all tests", deadline=None)
settings.load_profile("of all tests")
"""No test depends on how long anything takes: Hypothesis calls one flaky that took long on a busy machine."""

collect_ignore = ["tests/scripts/test_compiling.py", "tests/scripts/test_package.py"] if installed.IS_INSTALLED else []
"""What asks the sources already when it is collected."""

CONTRACT = (
    "compat_tests/test_acl_",
    "compat_tests/test_asyncio.py",
    "compat_tests/test_connection.py",
    "compat_tests/test_dump_restore.py",
    "compat_tests/test_node.py",
    "compat_tests/test_pubsub.py",
    "compat_tests/test_random_collections.py",
    "compat_tests/test_random_keys.py",
    "compat_tests/test_redis_cli.py",
    "compat_tests/test_replica.py",
    "compat_tests/test_streams",
    "compat_tests/test_wire.py",
    "tests/cli/",
    "tests/docs/test_blocks.py::test_a_block_runs_as_it_stands[README",
    "tests/embedded/test_asyncio.py",
    "tests/embedded/test_client.py",
    "tests/embedded/test_polled.py",
    "tests/embedded/test_processes.py",
    "tests/gateway/test_event_bus.py",
    "tests/gateway/test_lists.py",
    "tests/gateway/test_sse.py",
    "tests/gateway/test_topics.py",
    "tests/queues/",
    "tests/server/",
    "tests/test_build.py",
    "tests/test_imports.py",
    "tests/test_pytest_plugin.py",
    "tests/topics/",
)
"""What knows the package only as its users do: by a server, redis-py, the command line and HTTP. It proves in minutes
that what was installed works."""

NO_CONTRACT = (
    "tests/server/test_commons.py",
    "tests/server/test_compaction.py",
    "tests/server/test_durable_ends.py",
    "tests/server/test_full_store.py",
    "tests/server/test_growth.py",
    "tests/server/test_memory.py",
    "tests/server/test_random_readers.py",
    "tests/server/test_spilling.py",
    "tests/server/test_wires.py",
)
"""Of those, what asks more than whether it works: about parts inside, or at limits that take minutes to come to."""

SAMPLE = (
    "tests/commands/",
    "tests/embedded/",
    "tests/engine/",
    "tests/keyspace/",
    "tests/protocol/",
    "tests/pubsub/",
    "tests/storage/",
    "tests/server/test_two_servers.py",
    "compat_tests/test_random_collections.py",
    "compat_tests/test_random_commands.py",
    "compat_tests/test_random_keys.py",
    "compat_tests/test_random_scripts.py",
    "compat_tests/test_random_sorted_sets.py",
    "compat_tests/test_random_streams.py",
    "compat_tests/test_redis_cli.py",
)
"""What runs on the sources, too, where everything runs on the compiled package: the rooms with compiled modules or with
C, each of which has a pure form, and requests of each compiled family through whole servers."""

WHEEL_ALONE = (
    "tests/commands/test_touched_keys.py",
    "tests/embedded/test_blocking_reads.py",
    "tests/embedded/test_durable.py",
    "tests/embedded/test_memory.py",
    "tests/embedded/test_watch.py",
    "tests/engine/test_wait_ends.py",
    "tests/pubsub/test_full_mailboxes.py",
    "tests/storage/test_pins.py",
    "tests/engine/scripts/test_crossing.py",
    "tests/protocol/test_cut.py",
    "tests/protocol/test_encoder.py",
    "tests/storage/log/",
    "tests/storage/test_key_bytes.py",
    "tests/storage/window/",
)
"""Of those, what compiles a module of C itself and asks both of its forms, wherever it runs; and what takes long, and
asks of the pure forms what the rest of its room asks."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--contract", action="store_true", help="only what knows the package as its users do")
    parser.addoption(
        "--what-differs",
        action="store_true",
        help="only tests marked `sources`, and the sample of those that run on the compiled package as well",
    )


def pytest_configure(config: pytest.Config) -> None:
    """A run on another package than the one that it seems to run on is no run at all."""
    if installed.IS_INSTALLED:
        installed.guard_monkeypatch()
    if not hasattr(config, "workerinput") and (wrong := installed.wrong_package()):
        told = "\n  ".join(wrong[:20])
        pytest.exit(f"these tests would not test what they are to test:\n  {told}", returncode=4)
    progress.tell_progress(config, _run())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of which nothing is run are not read: that takes each worker half a minute."""
    if not fnmatch(collection_path.name, "test_*.py"):
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    if config.option.contract:
        is_part = file.startswith(CONTRACT) or any(each.startswith(f"{file}::") for each in CONTRACT)
        return not is_part or file.startswith(NO_CONTRACT) or None
    if config.option.what_differs and not _is_of_sample(file) and "mark.sources" not in collection_path.read_text():
        return True
    return None


@pytest.fixture(autouse=True, scope="session")
def programs_hear_ctrl_c() -> Iterator[None]:
    """A shell without job control starts what runs in its background with SIGINT ignored. Every program that the tests
    start would inherit that, and those that are to end by Ctrl-C would never end."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What belongs to the sources runs nowhere else. In workers of pytest-xdist, the longest come first."""
    left_out = [item for item in items if _is_left_out(config, item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_left_out(config, item)]
    if hasattr(config, "workerinput"):
        order = {begin: place for place, begin in enumerate(LONGEST)}
        took_s: Counter[str] = Counter()
        for nodeid, seconds in progress.times_before(_run()).items():
            took_s[_unit_of(nodeid)] += seconds
        items.sort(key=lambda item: (-took_s[unit := _unit_of(item.nodeid)], order.get(unit, len(order))))


def _run() -> str:
    return "wheel" if installed.IS_INSTALLED else "sources"


def _is_left_out(config: pytest.Config, item: pytest.Item) -> bool:
    if config.option.contract and (not item.nodeid.startswith(CONTRACT) or item.nodeid.startswith(NO_CONTRACT)):
        return True
    belongs_to_sources = item.get_closest_marker("sources") is not None
    if installed.IS_INSTALLED:
        return belongs_to_sources
    return bool(config.option.what_differs) and not belongs_to_sources and not _is_of_sample(item.nodeid)


def _is_of_sample(name: str) -> bool:
    return name.startswith(SAMPLE) and not name.startswith(WHEEL_ALONE)


def _unit_of(nodeid: str) -> str:
    """What stays in one worker: a file, or one of the rooms above."""
    file = nodeid.partition("::")[0]
    return next((begin for begin in LONGEST if file.startswith(begin)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay in one worker, as what they share does. The next file goes to whichever worker is free."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit_of(nodeid)

    config.option.loadscopereorder = False
    return Files(config, log)
