"""A program with redis-py's API that sets or gets keys, of a server (redis://) or of a folder (rlite://).

    caller.py URL COMMAND SECONDS THREADS VALUE_BYTES

Each thread has a key of its own and waits for each reply. Says how many replies there were, and in how many seconds;
one that is not as it must be is an error.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

url, command, seconds, threads, value_bytes = sys.argv[1], sys.argv[2], float(sys.argv[3]), *map(int, sys.argv[4:])
if url.startswith("rlite:"):
    from rlite_pubsub import from_url
else:
    from redis import from_url  # type: ignore[assignment]

CHECKED_EVERY = 32
value = b"v" * value_bytes
client = from_url(url)
clock = time.perf_counter
calls: list[Callable[[], Any]] = []
for number in range(threads):
    client.set(f"key:{number}", value)
    name = f"key:{number}"
    calls.append(partial(client.set, name, value) if command == "set" else partial(client.get, name))
expected = True if command == "set" else value
counts = [0] * threads
wrong: list[Any] = []


def call_on(number: int, deadline: float) -> None:
    call, done = calls[number], 0
    while clock() < deadline:
        for _ in range(CHECKED_EVERY):
            if (reply := call()) != expected:
                wrong.append(reply)
        done += CHECKED_EVERY
    counts[number] = done


print(json.dumps("ready"), flush=True)
sys.stdin.readline()
start = clock()
others = [threading.Thread(target=call_on, args=(number, start + seconds)) for number in range(1, threads)]
for other in others:
    other.start()
call_on(0, start + seconds)
for other in others:
    other.join()
took_s = clock() - start
if wrong:
    sys.exit(f"{len(wrong)} replies were wrong: {wrong[0]!r}")
print(json.dumps({"calls": sum(counts), "seconds": took_s}), flush=True)
client.close()
