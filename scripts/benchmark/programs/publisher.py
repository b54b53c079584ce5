"""A program with redis-py's API that publishes, to a server (redis://) or to a folder (rlite://).

    publisher.py URL CHANNEL SECONDS PAUSE_S PAYLOAD_BYTES

Every message has its number and the time it was sent at; the last one, after the clock has stopped, says "end".
Says how many there were, and in how many seconds.
"""

import json
import sys
import time

url, channel, seconds, pause_s, payload_bytes = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:5]), int(sys.argv[5])
if url.startswith("rlite:"):
    from rlite_pubsub import from_url
else:
    from redis import from_url  # type: ignore[assignment]

CHECKED_EVERY = 32
padding = b"p" * (payload_bytes - 29)
client = from_url(url)
client.ping()
publish, clock, pause = client.publish, time.perf_counter_ns, time.sleep
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
sent = unheard = 0
start = clock()
deadline = start + int(seconds * 1e9)
while clock() < deadline:
    for _ in range(1 if pause_s else CHECKED_EVERY):
        unheard += publish(channel, b"%010d%019d%b" % (sent, clock(), padding)) != 1
        sent += 1
    if pause_s:
        pause(pause_s)
took_s = (clock() - start) / 1e9
publish(channel, b"end")
if unheard:
    sys.exit(f"{unheard} of {sent} messages had no receiver, or several")
print(json.dumps({"sent": sent, "seconds": took_s}), flush=True)
client.close()
