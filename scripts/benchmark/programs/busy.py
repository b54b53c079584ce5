"""A program that keeps a share of one core busy, until it is ended.

    busy.py SHARE PERIOD_S
"""

import json
import sys
import time

share, period_s = map(float, sys.argv[1:])
clock, pause = time.perf_counter, time.sleep
print(json.dumps("ready"), flush=True)
while True:
    idle_at = clock() + share * period_s
    while clock() < idle_at:
        pass
    pause((1 - share) * period_s)
