"""Writes to a store, from where it stands on, and notes what was acknowledged: each note is a write to a file that the
recorder sees, too.

    python work.py TARGET NOTES POLICY COUNT NAME

TARGET is a store's folder, or the URL of a server. A note is `NAME NUMBER`: entry NUMBER of topic `t:NAME` and what
goes with it is acknowledged.
"""

from __future__ import annotations

import os
import sys

import redis

import rlite_pubsub

TRIMMED_TO = 30
LARGE_BYTES = 2_000_000
"""Its pages are free when it is deleted."""
HASH_FIELDS = 700
SET_MEMBERS = 640
SORTED_SET_MEMBERS = 300
"""So that each of them begins as one record, and is of many before long."""


def main(target: str, notes: str, policy: str, count: str, name: str) -> None:
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    client: redis.Redis = redis.from_url(target) if "://" in target else rlite_pubsub.Redis(target, appendfsync=policy)
    with client:
        first = int(client.get(f"k:{name}") or 0) + 1
        for number in range(first, first + int(count)):
            with client.pipeline(transaction=True) as changes:
                changes.xadd(f"t:{name}", {"n": str(number), "x": "x" * (number * 37 % 3000)}, id=f"{number}-1")
                changes.xadd(f"c:{name}", {"x": "x" * 1500}, id=f"{number}-1")
                changes.set(f"k:{name}", str(number))
                changes.rpush(f"l:{name}", str(number))
                changes.hset(f"h:{name}", f"f{number % HASH_FIELDS}", str(number))
                changes.zadd(f"z:{name}", {f"m{number}": number, "newest": number})
                changes.sadd(f"s:{name}", f"{number}")
                changes.srem(f"s:{name}", f"{number - SET_MEMBERS}")
                if number % 20 == 5:
                    changes.set(f"large:{name}", "x" * LARGE_BYTES)
                if number % 20 == 0:
                    changes.delete(f"large:{name}")
                    changes.xtrim(f"t:{name}", maxlen=TRIMMED_TO)
                    changes.ltrim(f"l:{name}", -TRIMMED_TO, -1)
                    changes.zremrangebyrank(f"z:{name}", 0, -SORTED_SET_MEMBERS)
                changes.execute()
            os.write(descriptor, f"{name} {number}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
