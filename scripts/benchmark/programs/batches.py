"""A program that publishes batches to the sessions of a server on the same folder.

    batches.py FOLDER CHANNEL SESSIONS BATCHES DEPTH PAYLOAD

Says how many bells it has rung.
"""

import json
import sys

import rlite_pubsub
from rlite_pubsub.embedded.host import Host

folder, channel, sessions, batches, depth = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
payload = sys.argv[6]
client = rlite_pubsub.Redis(folder)
((_, held),) = client.pubsub_numsub(channel)
if held != sessions:
    sys.exit(f"{held} sessions hold the channel, and not {sessions}")
host = Host.open(folder)
post = host.membership.post
print(json.dumps("ready"), flush=True)
sys.stdin.readline()
rung = post.rung
for _ in range(batches):
    pipe = client.pipeline(transaction=False)
    for _ in range(depth):
        pipe.publish(channel, payload)
    if (receivers := set(pipe.execute())) != {sessions}:
        sys.exit(f"the messages of a batch had {receivers} receivers")
print(json.dumps({"bells": post.rung - rung}), flush=True)
host.close()
client.close()
