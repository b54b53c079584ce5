"""A program that publishes to a crowd (crowd.py).

    addressing.py FOLDER CHANNEL PROCESSES STORED MESSAGES

First, while nobody reads, STORED short messages and as many long ones: says by how many bytes live.mdb grows with each,
and how many seconds they take. Then, when it is told to, MESSAGES short ones, and "end".
"""

import json
import sys
import time

import rlite_pubsub
from rlite_pubsub.storage.store import Store

SHORT_BYTES, LONG_BYTES = 100, 10_000
folder, channel, processes, stored, messages = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
client = rlite_pubsub.Redis(folder)
sent = 0


def publish(count: int, payload_bytes: int) -> float:
    """Seconds for so many."""
    global sent
    padding = b"p" * (payload_bytes - 10)
    start = time.perf_counter()
    for number in range(sent, sent + count):
        if (receivers := client.publish(channel, b"%010d%b" % (number, padding))) != processes:
            sys.exit(f"message {number} had {receivers} receivers")
    sent += count
    return time.perf_counter() - start


with Store.open(folder) as store:
    publish(stored // 4, SHORT_BYTES)  # what the first ones bring is not per message
    answer = {}
    for name, payload_bytes in (("short", SHORT_BYTES), ("long", LONG_BYTES)):
        before = store.live.used_bytes()
        seconds = publish(stored, payload_bytes)
        answer[name] = {"bytes": (store.live.used_bytes() - before) / stored, "seconds": seconds / stored}
print(json.dumps(answer | {"payload_bytes": LONG_BYTES - SHORT_BYTES}), flush=True)
sys.stdin.readline()
publish(messages, SHORT_BYTES)
client.publish(channel, "end")
print(json.dumps({"sent": sent}), flush=True)
client.close()
