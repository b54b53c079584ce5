"""A subscriber is killed, and gets what it missed when it comes back.

    python away.py

prints

    billing has tea
    billing is killed
    billing has coffee
    billing has milk
"""

import multiprocessing
import os
import signal
import time

import rlite_pubsub


def bill(heard):
    """A process with a durable subscriber: its name is what it is known by."""
    r = rlite_pubsub.Redis("./store", client_name="durable:billing", decode_responses=True)
    p = r.pubsub(ignore_subscribe_messages=True)
    p.subscribe("orders")
    heard.put("I am here")
    while True:
        message = p.get_message(timeout=5)  # and what it returned before has been handled
        if message is not None:
            print("billing has", message["data"], flush=True)
            heard.put(message["data"])


def start(heard):
    process = multiprocessing.Process(target=bill, args=(heard,))
    process.start()
    heard.get()
    return process


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join()


if __name__ == "__main__":
    heard = multiprocessing.SimpleQueue()
    r = rlite_pubsub.Redis("./store")
    process = start(heard)
    r.publish("orders", "tea")
    heard.get()
    time.sleep(0.5)  # what it has handled for a moment does not come again after a kill
    kill(process)
    print("billing is killed", flush=True)

    r.publish("orders", "coffee")  # it is away: they wait for it, on disk
    r.publish("orders", "milk")
    process = start(heard)
    heard.get(), heard.get()
    kill(process)
