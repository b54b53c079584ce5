"""A program with redis-py's API that subscribes, to a server (redis://) or to a folder (rlite://).

    subscriber.py URL CHANNEL

Says how many messages came before "end", and their latencies in microseconds. One that is missing, out of order or
there twice is an error.
"""

import json
import sys
import time

url, channel = sys.argv[1:]
if url.startswith("rlite:"):
    from rlite_pubsub import from_url
else:
    from redis import from_url  # type: ignore[assignment]

PATIENCE_S = 120
client = from_url(url)
pubsub = client.pubsub()
pubsub.subscribe(channel)
pubsub.get_message(timeout=PATIENCE_S)
get_message, clock = pubsub.get_message, time.perf_counter_ns
print(json.dumps("ready"), flush=True)
latencies: list[int] = []
while True:
    message = get_message(timeout=PATIENCE_S)
    now = clock()
    if message is None:
        sys.exit(f"silence after {len(latencies)} messages")
    data = message["data"]
    if data == b"end":
        break
    if int(data[:10]) != len(latencies):
        sys.exit(f"message {int(data[:10])} came when {len(latencies)} was due")
    latencies.append(now - int(data[10:29]))
latencies.sort()
count = len(latencies)
answer = {"received": count, "p50": latencies[count // 2] / 1e3, "p99": latencies[count * 99 // 100] / 1e3}
print(json.dumps(answer), flush=True)
pubsub.close()
client.close()
