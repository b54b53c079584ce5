"""A program that imports, opens a new store, and publishes: says how many milliseconds each took.

first.py FOLDER MODULE        MODULE: redis or rlite_pubsub
"""

import json
import sys
import time

folder, module = sys.argv[1:]
clock = time.perf_counter
start = clock()
if module == "redis":
    from redis import Redis as Client
else:
    from rlite_pubsub import Redis as Client  # type: ignore[assignment]
imported = clock()
if module != "redis":
    Client(folder).publish("news", "hello")
print(json.dumps({"import": (imported - start) * 1e3, "publish": (clock() - imported) * 1e3}), flush=True)
