"""A program that publishes to a subscriber of its own, from one thread.

    alone.py FOLDER SECONDS PAYLOAD_BYTES

Says how many messages there were, and how many seconds publishing and reading took. One that is missing or out of order
is an error.
"""

import json
import sys
import time

import rlite_pubsub

PATIENCE_S = 120
folder, seconds, payload_bytes = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub()
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
publish, clock = client.publish, time.perf_counter
padding = b"p" * (payload_bytes - 10)
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
sent = 0
start = clock()
deadline = start + seconds
while clock() < deadline:
    for number in range(sent, sent + 256):
        publish("news", b"%010d%b" % (number, padding))
    sent += 256
published_s = clock() - start
start = clock()
for number in range(sent):
    message = pubsub.get_message(timeout=PATIENCE_S)
    if message is None or int(message["data"][:10]) != number:
        sys.exit(f"{message!r} came when {number} of {sent} was due")
print(json.dumps({"sent": sent, "publishing": published_s, "reading": clock() - start}), flush=True)
pubsub.close()
client.close()
