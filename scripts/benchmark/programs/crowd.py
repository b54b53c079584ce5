"""A program that becomes so many processes, each with a subscriber of its own on one channel of a folder.

    crowd.py FOLDER CHANNEL PROCESSES

They read nothing before they are told to. Says "ready" when all have subscribed, and then the number of messages that
each has received before "end", in order.
"""

import json
import os
import sys

import rlite_pubsub
import rlite_pubsub.embedded.service  # what every subscriber needs is imported once, before the processes part

PATIENCE_S = 120
folder, channel, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])


def take_part(subscribed: int, go: int, received: int) -> None:
    client = rlite_pubsub.Redis(folder)
    pubsub = client.pubsub()
    pubsub.subscribe(channel)
    pubsub.get_message(timeout=PATIENCE_S)
    os.write(subscribed, b".")
    os.read(go, 1)
    count = 0
    while (message := pubsub.get_message(timeout=PATIENCE_S)) is not None and message["data"] != b"end":
        if int(message["data"][:10]) != count:
            sys.exit(f"message {int(message['data'][:10])} came when {count} was due")
        count += 1
    os.write(received, b"%d\n" % count)
    pubsub.close()
    client.close()


subscribed, go, received = os.pipe(), os.pipe(), os.pipe()
for _ in range(processes):
    if os.fork() == 0:
        try:
            os.close(go[1])  # or nobody would ever see its end
            take_part(subscribed[1], go[0], received[1])
        finally:
            sys.stderr.flush()
            os._exit(0)
for end in (subscribed[1], go[0], received[1]):
    os.close(end)
for _ in range(processes):
    os.read(subscribed[0], 1)
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
os.close(go[1])
with os.fdopen(received[0]) as counts:
    print(json.dumps([int(line) for line in counts]), flush=True)
