"""A subscriber that does not read costs its process no more memory than one that does, and loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from other_process import OtherProcess

MESSAGES, SIZE_BYTES = 10_000, 20_000
PEAK_BYTES = 80 << 20

_READER = f"""
import subprocess, threading
MESSAGES, SIZE = {MESSAGES}, {SIZE_BYTES}
def memory(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024
PUBLISH = '''
import sys, rlite_pubsub
with rlite_pubsub.Redis(sys.argv[1]) as client:
    for number in range(%d):
        client.publish("news", b"%%08d" %% number + b"x" * %d)
''' % (MESSAGES, SIZE)
"""
_READ = """
client = rlite_pubsub.Redis(folder, client_name=name)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
may_read = threading.Event()
in_order = 0
def read():
    global in_order
    may_read.wait()
    while in_order < MESSAGES:
        message = pubsub.get_message(timeout=PATIENCE_S)
        if message is not None:
            assert int(message["data"][:8]) == in_order
            in_order += 1
reader = threading.Thread(target=read)
reader.start()
before = memory("VmRSS")
publish()
may_read.set()
reader.join()
say(in_order, memory("VmHWM") - before)
pubsub.close()
client.close()
"""
_HERE = "def publish(): exec(PUBLISH, {})\nsys.argv = ['-c', folder]\n"
_ELSEWHERE = "def publish(): subprocess.run([sys.executable, '-c', PUBLISH, folder], check=True)\n"


@pytest.mark.parametrize("publish", [_HERE, _ELSEWHERE], ids=["published here", "published elsewhere"])
@pytest.mark.parametrize("name", ["", "durable:d"], ids=["ordinary", "durable"])
def test_memory_is_bounded_while_a_thread_does_not_read_and_200_mb_are_published(
    folder: Path, publish: str, name: str
) -> None:
    with OtherProcess(folder, _READER, publish, f"name = {name!r}\n", _READ) as process:
        read, peak_bytes = map(int, process.hear().split())
        assert process.end() == 0
    assert read == MESSAGES
    assert peak_bytes < PEAK_BYTES
