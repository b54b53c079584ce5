"""A worker of a soak: publishes or subscribes at random, or both, and keeps a page of the ledger.

    python -m tests.soak.worker TARGET ROLE SEED PAGE STOP_FILE

TARGET is a store's folder, or the URL of a server on it. Publishers end when STOP_FILE is there, subscribers when they
hear the last message of all, or some of them sooner, by themselves.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hiredis
import redis
import redis.asyncio

import rlite_pubsub
import rlite_pubsub.asyncio
from tests.patience import PATIENCE_S
from tests.soak.ledger import END_CHANNEL, Pen, Published

CHANNELS = ("a.1", "a.2", "b.1", "b.2")
PATTERNS = ("a.*", "*.2")
CONNECTION_LOST = 3
CAREFUL = "careful"
"""The role of a durable subscriber's client that may be killed at any moment."""


class Worker:
    """One incarnation."""

    def __init__(self, target: str, seed: int, page: str, stop_file: str, filled_file: Path | None = None) -> None:
        """`filled_file` is there if the disk was full at some time: then a durable subscriber may be told of messages
        that are lost."""
        self.dice = random.Random(seed)
        self.name = Path(page).stem
        self.pen = Pen(page)
        self.stop_file = Path(stop_file)
        self.filled_file = filled_file
        self.target = target
        self.options: dict[str, Any] = {"decode_responses": True, "protocol": self.dice.choice([2, 3])}
        if self.is_durable:
            self.options["client_name"] = "durable:" + self.name.rpartition("-")[0]
        self.client: redis.Redis = (
            redis.from_url(target, **self.options) if "://" in target else rlite_pubsub.Redis(target, **self.options)
        )
        self.number = 0

    @property
    def is_durable(self) -> bool:
        return self.name.startswith("durable")

    # -- publishing

    def publish(self) -> None:
        """Until it is time to stop, or this one has had enough."""
        enough = self.dice.choice([30, 300, 10**9])
        while not self.stop_file.exists() and self.number < enough:
            self._publish_some(self.dice.choice([1, 1, 1, 1, 20]))
            time.sleep(self.dice.random() * 0.01)  # the others want the processors too
        self.pen.silent()

    def _publish_some(self, count: int) -> None:
        sent_ns = time.monotonic_ns()
        batch = [Published(self.number + place, self.dice.choice(CHANNELS), sent_ns) for place in range(1, count + 1)]
        self.number += count
        if count == 1:
            self.client.publish(batch[0].channel, self._payload(batch[0]))
        else:
            with self.client.pipeline(transaction=self.dice.random() < 0.5) as pipe:
                for one in batch:
                    pipe.publish(one.channel, self._payload(one))
                pipe.execute()
        self.pen.published(batch)

    def _payload(self, one: Published) -> str:
        return f"{self.name}:{one.number}:" + "x" * self.dice.choice([0, 10, 3000])

    # -- subscribing

    def subscribe(self, dice: random.Random) -> None:
        """Until the end of all, or this one has had enough."""
        enough = dice.choice([50, 10**9, 10**9])
        pubsub = self.client.pubsub()  # type: ignore[no-untyped-call]
        channels = [END_CHANNEL, *dice.sample(CHANNELS, dice.randint(1, len(CHANNELS)))]
        patterns = dice.sample(PATTERNS, dice.randint(0, len(PATTERNS)))
        pubsub.subscribe(*channels)
        if patterns:
            pubsub.psubscribe(*patterns)
        given_up = dice.choice([None, None, None, *channels[1:]])
        heard, is_last = 0, False
        while heard < enough:
            message = pubsub.get_message(timeout=0 if is_last else PATIENCE_S)
            if message is None:
                if not is_last:
                    raise AssertionError("the end was not heard")
                self.pen.ended()
                break
            is_last |= message["channel"] == END_CHANNEL and message["type"] == "message"
            heard += self._take(message)
            if given_up is not None and dice.random() < 0.02:
                self.pen.unsubscribing(given_up)
                pubsub.unsubscribe(given_up)
                given_up = None
            if dice.random() < 0.05:  # routes change under the publishers
                change = dice.choice([pubsub.subscribe, pubsub.unsubscribe, pubsub.psubscribe, pubsub.punsubscribe])
                change(f"idle.{dice.randrange(3)}*")
        pubsub.close()

    def _take(self, message: dict[str, Any]) -> bool:
        channel = message["channel"]
        if channel.startswith("idle."):
            return False
        if message["type"] in ("subscribe", "psubscribe"):
            if channel != END_CHANNEL:
                self.pen.subscribed(channel)
        elif message["type"] == "unsubscribe":
            self.pen.unsubscribed(channel)
        elif message["type"] == "gap" and self.is_durable and self.filled_file and self.filled_file.exists():
            self.pen.gap(channel, int(message["data"]))
        elif message["type"] not in ("message", "pmessage"):
            raise AssertionError(f"nothing may be lost: {message}")
        elif channel != END_CHANNEL:
            publisher, number, _ = message["data"].split(":")
            self.pen.received(message["pattern"] or channel, channel, publisher, int(number))
            return True
        return False

    def subscribe_durably(self) -> None:
        """The same names in every life, until the end of all, or this one has had enough for its life."""
        enough = 10**9 if self.stop_file.exists() else self.dice.choice([50, 500, 10**9])
        pubsub = self.client.pubsub()  # type: ignore[no-untyped-call]
        pubsub.subscribe(END_CHANNEL, *CHANNELS[:3])
        pubsub.psubscribe(PATTERNS[0])
        heard, is_last = 0, False
        while True:
            is_enough = is_last or heard >= enough  # then what has been read already is taken still
            message = pubsub.get_message(timeout=0 if is_enough else PATIENCE_S)
            if message is None:
                assert is_enough, "the end was not heard"
                break
            is_last |= message["channel"] == END_CHANNEL and message["type"] == "message"
            heard += self._take(message)
        if is_last:
            self.pen.ended()
        self._end_late(pubsub)

    def _end_late(self, pubsub: redis.client.PubSub) -> None:
        """What comes meanwhile lies unread in the kernel, also between the two steps in which redis-py closes."""
        time.sleep(self.dice.choice([0, 0.02, 0.5]))
        connection = pubsub.connection
        if "://" in self.target and connection is not None and connection._sock is not None:
            connection._sock.shutdown(socket.SHUT_RDWR)
            time.sleep(self.dice.choice([0, 0.02, 0.5]))
        pubsub.close()

    def subscribe_carefully(self) -> None:
        """As `subscribe_durably`, but nothing is taken from the kernel before it is in the ledger: so it may be killed
        at any moment."""
        where = urlsplit(self.target)
        line = socket.create_connection((where.hostname, where.port))
        line.settimeout(PATIENCE_S)
        line.sendall(_encoded("CLIENT", "SETNAME", self.options["client_name"]))
        line.sendall(_encoded("SUBSCRIBE", END_CHANNEL, *CHANNELS[:3]) + _encoded("PSUBSCRIBE", PATTERNS[0]))
        reader = hiredis.Reader(encoding="utf-8")
        while seen := self._peek(line):
            reader.feed(seen)
            while (reply := reader.gets()) is not False:
                if not isinstance(reply, list):
                    assert reply == "OK", reply
                    continue
                if reply[0] == "gap":
                    reply = reply[:3]  # without since when
                kind, *pattern, channel, data = reply
                message = {"type": kind, "pattern": pattern[0] if pattern else None, "channel": channel, "data": data}
                self._take(message)
                if channel == END_CHANNEL and kind == "message":
                    self.pen.ended()
                    return
            line.recv(len(seen))
        raise redis.ConnectionError("closed by the server")

    def _peek(self, line: socket.socket) -> bytes:
        try:
            return line.recv(1 << 16, socket.MSG_PEEK)
        except ConnectionResetError:
            return b""

    async def subscribe_in_asyncio(self) -> None:
        """Until the end of all, or this one has had enough."""
        enough = self.dice.choice([50, 10**9, 10**9])
        library = redis.asyncio.from_url if "://" in self.target else rlite_pubsub.asyncio.Redis
        async with library(self.target, **self.options) as client, client.pubsub() as pubsub:
            await pubsub.subscribe(END_CHANNEL, *self.dice.sample(CHANNELS, self.dice.randint(1, len(CHANNELS))))
            for pattern in self.dice.sample(PATTERNS, self.dice.randint(0, len(PATTERNS))):
                await pubsub.psubscribe(pattern)
            heard, is_last = 0, False
            while heard < enough:
                message = await pubsub.get_message(timeout=0 if is_last else PATIENCE_S)
                if message is None:
                    assert is_last, "the end was not heard"
                    self.pen.ended()
                    break
                is_last |= message["channel"] == END_CHANNEL and message["type"] == "message"
                heard += self._take(message)

    # -- both

    def work(self, role: str) -> None:
        if role == "publisher":
            self.publish()
        elif role == "subscriber":
            self.subscribe(self.dice)
        elif role == "asyncio":
            asyncio.run(self.subscribe_in_asyncio())
        elif role == CAREFUL:
            self.subscribe_carefully()
        elif self.is_durable:
            self.subscribe_durably()
        else:
            reader = threading.Thread(target=self._guarded, args=(random.Random(self.dice.random()),), daemon=True)
            reader.start()
            self.publish()
            reader.join()
        self.client.close()

    def _guarded(self, dice: random.Random) -> None:
        try:
            self.subscribe(dice)
        except redis.ConnectionError:
            os._exit(CONNECTION_LOST)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)


def _encoded(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words])


def main(target: str, role: str, seed: str, page: str, stop_file: str) -> int:
    try:
        Worker(target, int(seed), page, stop_file).work(role)
    except (redis.ConnectionError, ConnectionError):
        if "://" not in target:
            raise
        return CONNECTION_LOST
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
