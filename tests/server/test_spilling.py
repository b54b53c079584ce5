"""A subscriber that does not read costs disk, not memory, loses nothing, and gets everything in order when it reads."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
from patience import PATIENCE_S, until
from peer import Peer, request
from server_process import Serve, ServerProcess
from store_view import look

GB = 1_000_000_000
MB = 1 << 20
SMALL_BUFFER = 32 * 1024
"""A receive buffer of the kernel's that is soon full."""


def payloads(total_bytes: int, sizes: tuple[int, ...]) -> Iterator[bytes]:
    """Numbered payloads of these sizes in turn."""
    sent = 0
    for number, size in enumerate(cycle(sizes)):
        if sent >= total_bytes:
            return
        sent += size
        yield b"%010d" % number + b"." * (size - 10)


def publish(publisher: Peer, channel: str, messages: Iterator[bytes], server: ServerProcess | None = None) -> int:
    """Publish all, some at a time; how many there were, after the server has answered for each."""
    count = 0
    batch: list[bytes] = []
    batch_bytes = 0
    for message in messages:
        batch.append(request("PUBLISH", channel, message))
        batch_bytes += len(message)
        if batch_bytes >= MB:
            count += _exchange(publisher, batch)
            batch, batch_bytes = [], 0
    return count + _exchange(publisher, batch)


def _exchange(publisher: Peer, batch: list[bytes]) -> int:
    publisher.send(b"".join(batch))
    publisher.replies(len(batch))
    return len(batch)


def assert_receives(subscriber: Peer, count: int, channel: bytes = b"c", first: int = 0) -> None:
    """All of them, in order."""
    for number in range(first, first + count):
        word, name, payload = subscriber.reply()
        assert (word, name, payload[:10]) == (b"message", channel, b"%010d" % number)


def info(peer: Peer, field: str) -> str:
    text = peer.do("INFO", "everything").decode()
    return next((line.partition(":")[2] for line in text.splitlines() if line.startswith(field + ":")), "")


def is_live_again(watcher: Peer) -> bool:
    return info(watcher, "spilled_sessions") == "0" and info(watcher, "spilled_bytes") == "0"


def stalled(server: ServerProcess, channel: str = "c", protocol: int = 2) -> Peer:
    """A subscriber that does not read on."""
    peer = server.connect(protocol=protocol, receive_buffer_bytes=SMALL_BUFFER)
    assert peer.do("SUBSCRIBE", channel) == [b"subscribe", channel.encode(), 1]
    return peer


class Reader(threading.Thread):
    """A subscriber that reads all the time."""

    def __init__(self, server: ServerProcess, channel: str = "c") -> None:
        super().__init__()
        self._peer = server.connect()
        self._peer.do("SUBSCRIBE", channel)
        self.numbers: list[int] = []
        self.end = -1  # of the numbers, once it is known

    def run(self) -> None:
        while (message := self._peer.reply())[2] != b"end":
            self.numbers.append(int(message[2][:10]))
        self._peer.close()


def publish_as_it_reads(publisher: Peer, fast: Reader, messages: Iterator[bytes]) -> int:
    """As `publish`, and never more ahead of a reader than it may be without becoming a slow one."""
    count = 0
    while some := list(islice(messages, 8)):
        count += publish(publisher, "c", iter(some))
        until(lambda read=count: len(fast.numbers) == read, "what the fast one reads")  # type: ignore[misc]
    return count


def test_subscriber_that_stops_reading_while_1_gb_is_published_costs_little_memory_and_gets_all_in_order(
    serve: Serve, tmp_path: Path
) -> None:
    if shutil.disk_usage(tmp_path).free < 4 * GB:
        pytest.skip("less than 4 GB free for the 1 GB that is spilled")
    server = serve()
    slow, fast, publisher = stalled(server), Reader(server), server.connect()
    fast.start()
    before = server.memory_bytes()
    server.forget_peak()

    count = publish(publisher, "c", payloads(GB, (16 << 10, 64 << 10, 256 << 10, MB)))
    publisher.do("PUBLISH", "c", b"end")
    fast.join(PATIENCE_S)

    assert fast.numbers == list(range(count)), "another subscriber received everything meanwhile"
    assert int(info(publisher, "spilled_bytes")) > 900_000_000
    assert server.peak_memory_bytes() - before < 64 * MB
    assert_receives(slow, count)
    assert slow.reply()[2] == b"end"
    assert server.peak_memory_bytes() - before < 64 * MB, "reading it back costs no memory either"
    until(lambda: is_live_again(publisher))
    assert look(server.store_folder).has_no_mail
    publisher.do("PUBLISH", "c", "live")
    assert slow.reply()[2] == b"live"


@pytest.mark.parametrize("protocol", [2, 3])
def test_many_small_messages_spill_and_come_back_in_order(server: ServerProcess, protocol: int) -> None:
    slow, publisher = stalled(server, protocol=protocol), server.connect()
    before = server.memory_bytes()
    server.forget_peak()
    count = publish(publisher, "c", payloads(30 * MB, (100,)))
    assert int(info(publisher, "spilled_bytes")) > 20 * MB
    assert_receives(slow, count)
    assert server.peak_memory_bytes() - before < 64 * MB
    until(lambda: is_live_again(publisher))
    assert look(server.store_folder).has_no_mail


def test_order_is_kept_for_one_that_reads_a_little_now_and_then(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    messages = payloads(64 * MB, (30_000, 1_000, 300_000))
    published = received = 0
    while batch := list(islice(messages, 60)):
        published += publish(publisher, "c", iter(batch))
        assert_receives(slow, min(37, published - received), first=received)
        received += min(37, published - received)
    assert_receives(slow, published - received, first=received)
    until(lambda: is_live_again(publisher))
    assert look(server.store_folder).has_no_mail


def test_several_slow_subscribers_share_what_is_stored(server: ServerProcess) -> None:
    slow, publisher = [stalled(server) for _ in range(5)], server.connect()
    count = publish(publisher, "c", payloads(40 * MB, (64 << 10,)))
    view = look(server.store_folder)
    assert len(view.mailboxes) == 5
    assert server.store_folder.joinpath("live.mdb").stat().st_size < 60 * MB
    for one in slow:
        assert_receives(one, count)
    until(lambda: is_live_again(publisher))
    assert look(server.store_folder).has_no_mail


@pytest.mark.parametrize("way", ["close", "reset"])
def test_peer_that_is_gone_while_spilled_leaves_nothing_in_the_store(server: ServerProcess, way: str) -> None:
    slow, publisher = stalled(server), server.connect()
    publish(publisher, "c", payloads(40 * MB, (64 << 10,)))
    assert look(server.store_folder).mailboxes
    descriptors = server.descriptors()
    getattr(slow, way)()
    until(lambda: is_live_again(publisher))
    until(lambda: server.descriptors() == descriptors - 1)
    view = look(server.store_folder)
    assert view.has_no_mail
    assert view.has_no_names


def test_client_kill_of_a_spilled_subscriber_leaves_nothing_in_the_store(server: ServerProcess) -> None:
    slow = server.connect(receive_buffer_bytes=SMALL_BUFFER)
    number = slow.do("CLIENT", "ID")
    slow.do("SUBSCRIBE", "c")
    publisher = server.connect()
    publish(publisher, "c", payloads(20 * MB, (64 << 10,)))
    assert publisher.do("CLIENT", "KILL", "ID", number) == 1
    until(lambda: is_live_again(publisher))
    assert look(server.store_folder).has_no_mail


def test_ping_of_a_spilled_resp3_subscriber_is_answered_in_its_place(server: ServerProcess) -> None:
    slow, publisher = stalled(server, protocol=3), server.connect()
    before = publish(publisher, "c", payloads(20 * MB, (64 << 10,)))
    slow.send(request("PING", "where am I"))
    until(lambda: "cmd=ping" in publisher.do("CLIENT", "LIST").decode())
    after = publish(publisher, "c", payloads(MB, (64 << 10,)))
    assert_receives(slow, before)
    assert slow.reply() == b"where am I"
    assert_receives(slow, after)


def test_normal_client_that_does_not_read_its_replies_spills_too(server: ServerProcess) -> None:
    slow, watcher = server.connect(receive_buffer_bytes=SMALL_BUFFER), server.connect()
    before = server.memory_bytes()
    server.forget_peak()
    answer = b"x" * 100_000
    slow.send(request("ECHO", answer) * 1000)
    until(lambda: info(watcher, "total_commands_processed") > "1000" and int(info(watcher, "spilled_bytes")) > 80 * MB)
    assert server.peak_memory_bytes() - before < 64 * MB
    assert slow.replies(1000) == [answer] * 1000
    until(lambda: is_live_again(watcher))
    assert look(server.store_folder).has_no_mail


def test_unsubscribing_while_spilled_is_confirmed_behind_what_came_before(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    count = publish(publisher, "c", payloads(20 * MB, (64 << 10,)))
    slow.send(request("UNSUBSCRIBE", "c"))
    until(lambda: publisher.do("PUBSUB", "NUMSUB", "c") == [b"c", 0])
    assert_receives(slow, count)
    assert slow.reply() == [b"unsubscribe", b"c", 0]
    assert look(server.store_folder).has_no_names


def test_subscribing_while_spilled_is_confirmed_behind_what_came_before(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    count = publish(publisher, "c", payloads(8 * MB, (64 << 10,)))
    slow.send(request("SUBSCRIBE", "d") + request("PSUBSCRIBE", "e*") + request("SSUBSCRIBE", "f"))
    until(lambda: publisher.do("PUBSUB", "SHARDNUMSUB", "f") == [b"f", 1])
    assert publisher.do("PUBLISH", "d", "last") == 1
    assert_receives(slow, count)
    assert slow.replies(3) == [[b"subscribe", b"d", 2], [b"psubscribe", b"e*", 3], [b"ssubscribe", b"f", 1]]
    assert slow.reply() == [b"message", b"d", b"last"]


def test_spill_threshold_zero_spills_everything_and_loses_nothing(serve: Serve) -> None:
    server = serve("--spill-threshold", "0")
    slow, publisher = stalled(server), server.connect()
    count = publish(publisher, "c", payloads(20 * MB, (64 << 10,)))
    assert_receives(slow, count)


# -- limits


def test_hard_limit_of_the_user_disconnects_says_so_and_is_counted(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    assert publisher.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 8mb 0 0") == b"OK"
    publish(publisher, "c", payloads(30 * MB, (64 << 10,)))
    until(lambda: publisher.do("PUBSUB", "NUMSUB", "c") == [b"c", 0])
    assert slow.is_closed()
    assert "closed for overcoming of output buffer limits" in server.log()
    assert info(publisher, "slow_subscribers_disconnected") == "1"
    view = look(server.store_folder)
    assert view.has_no_mail
    assert view.has_no_names


def test_soft_limit_of_the_user_disconnects_once_it_has_lasted(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    publisher.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 8mb 1")
    publish(publisher, "c", payloads(30 * MB, (64 << 10,)))
    assert publisher.do("PUBSUB", "NUMSUB", "c") == [b"c", 1], "not at once"
    until(lambda: publisher.do("PUBSUB", "NUMSUB", "c") == [b"c", 0])
    assert slow.is_closed()
    assert "closed for overcoming of output buffer limits" in server.log()


def test_soft_limit_is_forgotten_when_the_backlog_shrinks_in_time(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    publisher.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 8mb 3600")
    count = publish(publisher, "c", payloads(30 * MB, (64 << 10,)))
    assert_receives(slow, count)
    publisher.do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 8mb 0")
    until(lambda: is_live_again(publisher))
    assert publisher.do("PUBSUB", "NUMSUB", "c") == [b"c", 1]


def test_limit_of_normal_clients_is_not_that_of_subscribers(server: ServerProcess) -> None:
    slow, watcher = server.connect(receive_buffer_bytes=SMALL_BUFFER), server.connect()
    watcher.do("CONFIG", "SET", "client-output-buffer-limit", "normal 16mb 0 0")
    slow.send(request("ECHO", b"x" * 100_000) * 120)
    until(lambda: int(info(watcher, "spilled_bytes")) > MB)
    with contextlib.suppress(ConnectionResetError):
        slow.send(request("ECHO", b"x" * 100_000) * 200)
    assert slow.is_closed()
    assert info(watcher, "slow_subscribers_disconnected") == "1"


def test_whoever_has_not_logged_in_and_takes_no_reply_is_cut_off(serve: Serve) -> None:
    server = serve("--requirepass", "secret")
    slow = server.connect(receive_buffer_bytes=SMALL_BUFFER)
    with contextlib.suppress(OSError):
        for _ in range(30):
            slow.send(request("GET", "x") * 10_000)
    assert slow.is_closed()
    assert "closed for overcoming of output buffer limits" in server.log()


@pytest.mark.parametrize("protocol", [2, 3])
def test_drop_oldest_tells_exactly_what_is_missing_and_keeps_the_order(serve: Serve, protocol: int) -> None:
    server = serve("--slow-subscriber-policy", "drop-oldest", "--client-output-buffer-limit", "pubsub 4mb 0 0")
    slow, publisher = stalled(server, "c", protocol), server.connect()
    slow.send(request("PSUBSCRIBE", "d*"))
    assert slow.reply() == [b"psubscribe", b"d*", 2]
    batch = [request("PUBLISH", "cd"[number % 2], b"%010d" % number + b"." * 20_000) for number in range(2000)]
    for start in range(0, 2000, 50):
        _exchange(publisher, batch[start : start + 50])
    for channel in "cd":
        publisher.do("PUBLISH", channel, "end")

    received: dict[bytes, list[int]] = {b"c": [], b"d": []}
    missing = {b"c": 0, b"d": 0}
    gaps = 0
    ended = 0
    while ended < 2:
        message = slow.reply()
        if message[0] == b"gap":
            _, channel, count, since_ms = message
            assert 1_600_000_000_000 < since_ms < 10_000_000_000_000
            missing[channel] += count
            gaps += 1
        elif message[-1] == b"end":
            ended += 1
        else:
            received[message[-2]].append(int(message[-1][:10]))
    for at, channel in enumerate((b"c", b"d")):
        assert missing[channel] > 0
        assert len(received[channel]) + missing[channel] == 1000
        assert received[channel] == sorted(set(received[channel]))
        assert received[channel][-1] == 1998 + at, "the newest are kept"
    assert int(info(publisher, "dropped_messages")) == sum(missing.values())
    assert int(info(publisher, "gaps")) >= gaps
    assert "lost its" in server.log()
    assert "drop-oldest" in server.log()


def test_drop_oldest_keeps_the_replies_between_the_messages(serve: Serve) -> None:
    server = serve("--slow-subscriber-policy", "drop-oldest", "--client-output-buffer-limit", "pubsub 2mb 0 0")
    slow, publisher = stalled(server, protocol=3), server.connect()
    for number in range(10):
        publish(publisher, "c", payloads(3 * MB, (20_000,)))
        slow.send(request("ECHO", f"reply {number}"))
        until(lambda calls=f"calls={number + 1},": info(publisher, "cmdstat_echo").startswith(calls))
    publisher.do("PUBLISH", "c", "end")
    echoes = []
    while (message := slow.reply())[-1:] != [b"end"]:
        if isinstance(message, bytes):
            echoes.append(message)
    assert echoes == [b"reply %d" % number for number in range(10)]


def test_gaps_of_ever_new_channels_do_not_grow_without_end(serve: Serve) -> None:
    server = serve("--slow-subscriber-policy", "drop-oldest", "--client-output-buffer-limit", "pubsub 1mb 0 0")
    slow = server.connect(receive_buffer_bytes=SMALL_BUFFER)
    slow.do("PSUBSCRIBE", "*")
    publisher = server.connect()
    before = server.memory_bytes()
    for start in range(0, 100_000, 5000):
        one_offs = [f"{'one-off':100}{number}" for number in range(start, start + 5000)]
        _exchange(publisher, [request("PUBLISH", name, "x" * 200) for name in one_offs])
        if publisher.do("PUBSUB", "NUMPAT") == 0:
            break
    assert server.memory_bytes() - before < 32 * MB
    assert slow.is_closed(), "when even the gaps are too many, it is disconnected"


# -- the store is full


@pytest.mark.parametrize("policy", ["disconnect", "drop-oldest"])
def test_full_store_is_told_and_only_the_slow_are_concerned(serve: Serve, policy: str) -> None:
    server = serve("--store-quota", "16mb", "--slow-subscriber-policy", policy)
    slow, fast, publisher = stalled(server), Reader(server), server.connect()
    other = server.connect()
    other.do("SUBSCRIBE", "other")
    fast.start()
    count = publish_as_it_reads(publisher, fast, payloads(60 * MB, (64 << 10,)))
    publisher.do("PUBLISH", "c", b"end")
    fast.join(PATIENCE_S)
    assert fast.numbers == list(range(count))
    assert publisher.do("PUBLISH", "other", "hi") == 1
    assert other.reply() == [b"message", b"other", b"hi"]
    assert "Can't spill to the store" in server.log()
    assert "is full: its quota is 16777216 bytes" in server.log()
    if policy == "disconnect":
        assert slow.is_closed()
        assert "closed for" in server.log()
        until(lambda: look(server.store_folder).has_no_mail)
    else:
        received: list[int] = []
        missing = 0
        while (message := slow.reply())[-1] != b"end":
            if message[0] == b"gap":
                missing += message[2]
            else:
                received.append(int(message[2][:10]))
        assert missing > 0
        assert len(received) + missing == count
        assert received == sorted(received)
        assert len(received) > 100, "what the store has room for is kept"


@pytest.mark.parametrize("policy", ["disconnect", "drop-oldest"])
def test_full_disk_is_told_and_only_the_slow_are_concerned(serve: Serve, tiny_disk: Path, policy: str) -> None:
    server = serve("--slow-subscriber-policy", policy, store_folder=tiny_disk)
    slow, fast, publisher = stalled(server), Reader(server), server.connect()
    fast.start()
    count = publish_as_it_reads(publisher, fast, payloads(60 * MB, (64 << 10,)))
    publisher.do("PUBLISH", "c", b"end")
    fast.join(PATIENCE_S)
    assert fast.numbers == list(range(count))
    assert "Can't spill to the store" in server.log()
    assert "No space left on device" in server.log()
    if policy == "disconnect":
        assert slow.is_closed()
    else:
        told = 0
        while (message := slow.reply())[-1] != b"end":
            told += message[2] if message[0] == b"gap" else 1
        assert told == count
    slow.close()
    publisher.do("PUBLISH", "c", "x")
    until(lambda: look(server.store_folder).has_no_mail)
    subscriber = server.connect()
    assert subscriber.do("SUBSCRIBE", "new") == [b"subscribe", b"new", 1]
    assert server.end() == 0
    assert "Traceback" not in server.log()


def test_server_ends_in_order_while_somebody_is_spilled(server: ServerProcess) -> None:
    slow, publisher = stalled(server), server.connect()
    publish(publisher, "c", payloads(100 * MB, (64 << 10,)))
    assert server.end(signal.SIGTERM) == 0
    assert slow.is_closed()
    view = look(server.store_folder)
    assert view.has_no_mail and view.has_no_names and view.subscribers == 0


def test_killed_server_leaves_nothing_that_its_successor_does_not_clean(serve: Serve) -> None:
    server = serve()
    slow, publisher = stalled(server), server.connect()
    publish(publisher, "c", payloads(40 * MB, (64 << 10,)))
    server.end(signal.SIGKILL)
    assert look(server.store_folder).mailboxes
    slow.close()
    serve()
    view = look(server.store_folder)
    assert view.has_no_mail and view.has_no_names and view.subscribers == 1


def test_limit_of_the_user_forbids_one_long_reply_as_in_redis(serve: Serve) -> None:
    server = serve("--client-output-buffer-limit", "normal", "100000", "0", "0")
    peer = server.connect()

    peer.send(request("ECHO", b"x" * 150_000))

    until(peer.is_closed)
    assert "overcoming of output buffer limits" in server.log()


def test_default_limit_forbids_no_reply_for_its_length(serve: Serve) -> None:
    reply = serve().connect().do("ECHO", b"x" * 50_000_000)

    assert len(reply) == 50_000_000
