"""Two processes of one application talk over a folder: no server, no port.

    python bus.py

prints

    the window shows: tea is ready
    the window shows: coffee is ready
"""

import multiprocessing

import rlite_pubsub


def show_window(is_open):
    """The other process: a window that shows what it hears."""
    p = rlite_pubsub.Redis("./store", decode_responses=True).pubsub(ignore_subscribe_messages=True)
    p.subscribe("kitchen")
    p.get_message(timeout=5)  # the confirmation: from here on nothing is missed
    is_open.set()
    shown = 0
    while shown < 2:
        message = p.get_message(timeout=5)  # sleeps until there is one
        if message is not None:
            print("the window shows:", message["data"])
            shown += 1


if __name__ == "__main__":
    is_open = multiprocessing.Event()
    window = multiprocessing.Process(target=show_window, args=(is_open,))
    window.start()
    is_open.wait()
    r = rlite_pubsub.Redis("./store")
    r.publish("kitchen", "tea is ready")
    r.publish("kitchen", "coffee is ready")
    window.join()
