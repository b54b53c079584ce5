"""kombu alone: a consumer that comes back by itself, and a producer."""

import os
import sys

import load
from kombu import Connection, Queue
from kombu.mixins import ConsumerMixin

import rlite_pubsub.integrations.kombu  # noqa: F401  (only where the URL begins with rlite:)

URL = os.environ["STORE_URL"]
OPTIONS = {"visibility_timeout": 2, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
queue = Queue("numbers", durable=True)


class Worker(ConsumerMixin):
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def get_consumers(self, consumer, channel):
        print("ready", flush=True)
        return [consumer([queue], callbacks=[self.do], prefetch_count=4)]

    def do(self, number, message) -> None:
        load.do(number)
        message.ack()


def offer(connection: Connection) -> None:
    producer = connection.Producer()
    load.offer(lambda number: producer.publish(number, routing_key=queue.name, declare=[queue], retry=True))


if __name__ == "__main__":
    with Connection(URL, transport_options=OPTIONS) as connection:
        if sys.argv[1] == "work":
            Worker(connection).run()
        else:
            offer(connection)
    print("done", flush=True)
