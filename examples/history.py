"""A topic keeps its entries: each reader starts where it likes, and may go on where another one stopped.

    python history.py

prints

    all: tea coffee milk
    the last: milk
    one, then elsewhere: tea | coffee milk
"""

from rlite_pubsub import topics


def read(since, count):
    """The items of the next entries, and where to go on."""
    with topics.subscribe("./store", "orders", since=since) as subscription:
        items = [subscription.get(timeout=5)["item"].decode() for _ in range(count)]
        return items, subscription.positions


if __name__ == "__main__":
    for item in ("tea", "coffee", "milk"):
        topics.publish("./store", "orders", {"item": item})

    items, _ = read(since=topics.BEGINNING, count=3)
    print("all:", *items)

    items, _ = read(since=topics.LATEST, count=1)
    print("the last:", *items)

    first, position = read(since=topics.BEGINNING, count=1)
    rest, _ = read(since=position, count=2)  # usually by another process, later
    print("one, then elsewhere:", *first, "|", *rest)
