"""Channels over links, between real processes: servers of ours, and redis-server."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import redis
from other_server import Ear, RedisProcess, end_way, link_process, linked, open_way
from patience import until
from server_process import Serve, ServerProcess

COUNT = 300


def client_of(server: ServerProcess | RedisProcess) -> redis.Redis:
    return redis.Redis(port=server.port)


def create(server: ServerProcess, name: str, target: ServerProcess | RedisProcess, *words: str) -> None:
    client_of(server).execute_command("LINK", "CREATE", name, f"redis://127.0.0.1:{target.port}", *words)
    until(lambda: linked(server.port, name), f"the link {name}")


def check_all(servers: dict[str, ServerProcess | RedisProcess]) -> None:
    """Each one says things; each one hears all of it once, and what one has said in its order."""
    ports = {name: server.port for name, server in servers.items()}
    ears = {name: Ear(port, "news", "ne*") for name, port in ports.items()}
    for port in ports.values():
        for ear in ears.values():
            open_way(port, ear, "news")
    for ear in ears.values():
        ear.heard.clear()
    clients = {name: redis.Redis(port=port) for name, port in ports.items()}
    for number in range(COUNT):
        for name, client in clients.items():
            client.publish("news", f"{name}:{number}")
    end_way(ports, list(ears.values()), "news")
    for ear in ears.values():
        for name in ports:
            found = [word for word in ear.heard if word.startswith(f"{name}:".encode())]
            # twice: by its name and by the pattern
            assert found == [f"{name}:{number}".encode() for number in range(COUNT) for _ in range(2)]


def test_what_is_published_on_either_side_is_heard_on_the_other_once(
    serve: Serve, tmp_path: Path, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, theirs = serve(), start_redis()
    create(ours, "central", theirs)
    check_all({"ours": ours, "theirs": theirs})


def test_two_links_between_the_same_two_stores_bring_each_message_once(serve: Serve, tmp_path: Path) -> None:
    one, two = serve(folder=tmp_path / "one"), serve(folder=tmp_path / "two")
    create(one, "there", two)
    create(one, "again", two)
    create(two, "back", one)
    check_all({"one": one, "two": two})


def test_a_ring_of_three_stores_brings_each_message_once(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(folder=tmp_path / str(number)) for number in range(3)]
    for number, server in enumerate(servers):
        create(server, "next", servers[(number + 1) % 3])
    check_all({str(number): server for number, server in enumerate(servers)})


def test_two_stores_that_are_linked_and_meet_at_a_redis_hear_each_message_once(
    serve: Serve, tmp_path: Path, start_redis: Callable[..., RedisProcess]
) -> None:
    one, two, theirs = serve(folder=tmp_path / "one"), serve(folder=tmp_path / "two"), start_redis()
    create(one, "redis", theirs)
    create(two, "redis", theirs)
    create(one, "two", two)
    check_all({"one": one, "two": two, "theirs": theirs})


def test_a_channel_is_subscribed_to_there_only_while_somebody_here_holds_it(
    serve: Serve, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, theirs = serve(), start_redis()
    create(ours, "central", theirs)
    there = client_of(theirs)
    assert there.pubsub_channels() == []
    ear = Ear(ours.port, "news")
    until(lambda: there.pubsub_channels() == [b"news"], "the subscription")
    ear._pubsub.unsubscribe("news")
    until(lambda: there.pubsub_channels() == [], "the end of it")
    durable = redis.Redis(port=ours.port, client_name="durable:away")
    held = durable.pubsub()
    held.subscribe("orders")
    held.get_message(timeout=30)
    held.close()
    durable.close()
    until(lambda: there.pubsub_channels() == [b"orders"], "what a durable subscriber holds")


def test_names_get_a_prefix_and_other_channels_stay_here(
    serve: Serve, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, theirs = serve(), start_redis()
    create(ours, "central", theirs, "CHANNELS", "news.*", "PREFIX", "eu:")
    there, here = Ear(theirs.port, "*"), Ear(ours.port, "news.a", "other")
    open_way(ours.port, there, "news.a")
    redis.Redis(port=ours.port).publish("other", "here alone")
    redis.Redis(port=ours.port).publish("news.a", "for both")
    until(lambda: there.hears(b"for both"), "the message")
    assert b"here alone" not in there.heard
    until(lambda: client_of(theirs).publish("eu:news.a", "back") >= 2, "the subscription there")
    until(lambda: here.hears(b"back"), "the answer")


def test_the_way_is_open_again_after_a_kill_of_whichever_process(
    serve: Serve, tmp_path: Path, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, theirs = serve(), start_redis()
    create(ours, "central", theirs)
    heard = Ear(theirs.port, "news")
    open_way(ours.port, heard, "news")
    process = link_process(ours.store_folder)
    os.kill(process, signal.SIGKILL)
    until(lambda: link_process(ours.store_folder) not in (0, process), "another process")
    heard.heard.clear()
    open_way(ours.port, heard, "news")
    theirs.kill()
    theirs.start()
    again = Ear(theirs.port, "news")
    open_way(ours.port, again, "news")
    check_all({"ours": ours, "theirs": theirs})


def test_another_server_of_the_store_takes_the_links_when_one_is_killed(
    serve: Serve, start_redis: Callable[..., RedisProcess]
) -> None:
    servers, theirs = {one.pid: one for one in (serve(), serve())}, start_redis()
    store = next(iter(servers.values())).store_folder
    create(next(iter(servers.values())), "central", theirs)
    heard = Ear(theirs.port, "news")
    process = link_process(store)
    parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    servers.pop(parent).end(signal.SIGKILL)
    until(lambda: link_process(store) not in (0, process), "another process")
    (left,) = servers.values()
    open_way(left.port, heard, "news")


def test_a_link_that_is_paused_brings_nothing_and_one_that_is_deleted_is_gone(
    serve: Serve, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, theirs = serve(), start_redis()
    create(ours, "central", theirs)
    heard = Ear(theirs.port, "news")
    open_way(ours.port, heard, "news")
    client = client_of(ours)
    client.execute_command("LINK", "PAUSE", "central")
    until(lambda: len(client_of(theirs).client_list()) == 2, "the end of the connection")
    client.publish("news", "unheard")
    client.execute_command("LINK", "RESUME", "central")
    heard.heard.clear()
    open_way(ours.port, heard, "news")
    assert b"unheard" not in heard.heard
    assert client.execute_command("LINK", "DELETE", "central") == 1
    assert client.execute_command("LINK", "LIST") == []
    until(lambda: link_process(ours.store_folder) == 0, "the end of the process")


def test_a_link_that_another_one_replaces_at_once_ends_and_the_other_one_begins(
    serve: Serve, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, before, after = serve(), start_redis(), start_redis()
    create(ours, "central", before)
    with client_of(ours).pipeline() as pipe:
        pipe.execute_command("LINK", "DELETE", "central")
        pipe.execute_command("LINK", "CREATE", "central", f"redis://127.0.0.1:{after.port}")
        pipe.execute()
    heard = Ear(after.port, "news")
    open_way(ours.port, heard, "news")
    until(lambda: len(client_of(before).client_list()) == 1, "the end of the connection")


def test_what_the_other_side_refuses_is_said_and_tried_again(
    serve: Serve, start_redis: Callable[..., RedisProcess]
) -> None:
    ours, theirs = serve(), start_redis()
    there = client_of(theirs)
    everything = {"keys": ["*"], "channels": ["*"]}
    there.acl_setuser("leaf", enabled=True, passwords=["+secret"], commands=["+@all", "-info"], **everything)
    url = f"redis://leaf:secret@127.0.0.1:{theirs.port}"
    client_of(ours).execute_command("LINK", "CREATE", "central", url)

    def is_refused() -> bool:
        found = client_of(ours).execute_command("LINK", "INFO", "central")
        return bool(found[b"state"] == b"down" and b"NOPERM" in found[b"error"])

    until(is_refused, "the refusal")
    there.acl_setuser("leaf", enabled=True, commands=["+@all"], **everything)
    until(lambda: linked(ours.port, "central"), "the link")
