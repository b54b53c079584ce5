"""The client does what redis-py's does, with no server."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S
from reading import confirmations, messages
from redis.backoff import NoBackoff
from redis.retry import Retry

import rlite_pubsub


def test_a_message_reaches_channel_and_pattern_in_redis_order(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        pubsub.psubscribe("n*")
        assert confirmations(pubsub, 2) == [("subscribe", b"news", 1), ("psubscribe", b"n*", 2)]
        assert client.publish("news", "hello") == 2
        assert pubsub.get_message() == {"type": "message", "pattern": None, "channel": b"news", "data": b"hello"}
        assert pubsub.get_message() == {"type": "pmessage", "pattern": b"n*", "channel": b"news", "data": b"hello"}
        assert pubsub.get_message() is None


def test_sharded_channels_are_a_space_of_their_own(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.ssubscribe("news")
        assert client.publish("news", "no") == 0
        assert client.spublish("news", "yes") == 1
        assert messages(pubsub, 1) == [b"yes"]


@pytest.mark.parametrize("message", ["text", b"\x00\xff", 12, 1.5, bytearray(b"array"), memoryview(b"view"), ""])
def test_every_type_that_redis_py_takes_is_published_as_it_would(client: rlite_pubsub.Redis, message: object) -> None:
    expected = str(message).encode() if isinstance(message, str | int | float) else bytes(message)  # type: ignore[call-overload]
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        client.publish("news", message)
        client.execute_command("publish", "news", message)
        assert messages(pubsub, 2) == [expected, expected]


def test_what_redis_py_refuses_to_send_is_refused(client: rlite_pubsub.Redis) -> None:
    for wrong in (None, True, [], {}):
        with pytest.raises(redis.DataError, match="Invalid input of type"):
            client.publish("news", wrong)
        with pytest.raises(redis.DataError, match="Invalid input of type"):
            client.execute_command("ECHO", wrong)


def test_responses_are_decoded_where_asked(folder: Path, protocol: int) -> None:
    with rlite_pubsub.Redis(folder, protocol=protocol, decode_responses=True) as client, client.pubsub() as pubsub:
        pubsub.subscribe("näwß")
        client.publish("näwß", "grüße")
        assert messages(pubsub, 1) == ["grüße"]
        assert client.pubsub_channels() == ["näwß"]


def test_replies_have_the_shapes_of_the_protocol(client: rlite_pubsub.Redis, protocol: int) -> None:
    hello = client.execute_command("HELLO")
    assert (hello if protocol == 3 else dict(zip(hello[::2], hello[1::2], strict=True)))[b"proto"] == protocol
    assert client.echo("x") == b"x"
    assert client.config_get("maxclients") == {"maxclients": "10000"} or client.config_get("maxclients") == {
        b"maxclients": b"10000"
    }
    names = client.execute_command("COMMAND LIST")
    assert client.execute_command("COMMAND COUNT") == len([name for name in names if b"|" not in name])


def test_errors_are_redis_pys_own(client: rlite_pubsub.Redis) -> None:
    with pytest.raises(redis.ResponseError, match="unknown command 'NOSUCH'"):
        client.execute_command("NOSUCH")
    with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'publish' command"):
        client.execute_command("PUBLISH", "news")
    with pytest.raises(redis.AuthenticationError):
        client.auth("secret")


def test_a_pipeline_is_answered_in_order_and_a_transaction_at_once(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        with client.pipeline(transaction=False) as pipe:
            assert pipe.publish("news", 1).echo("x").publish("nobody", 2).execute() == [1, b"x", 0]
        with client.pipeline() as pipe:
            assert pipe.publish("news", 3).ping().publish("news", 4).execute() == [1, True, 1]
        with client.pipeline() as pipe, pytest.raises(redis.ResponseError, match="Command # 2"):
            pipe.publish("news", 5).execute_command("NOSUCH").execute()
        with client.pipeline(transaction=False) as pipe:
            replies = pipe.publish("news", 6).execute_command("NOSUCH").execute(raise_on_error=False)
            assert replies[0] == 1
            assert isinstance(replies[1], redis.ResponseError)
        assert messages(pubsub, 4) == [b"1", b"3", b"4", b"6"]


def test_a_client_with_one_connection_keeps_its_state(folder: Path, protocol: int) -> None:
    client = rlite_pubsub.Redis(folder, protocol=protocol, single_connection_client=True, client_name="first")
    with client:
        assert client.client_getname() in ("first", b"first")
        client.client_setname("second")
        assert client.publish("news", "x") == 0
        assert client.client_getname() in ("second", b"second")


def test_client_list_shows_names_and_the_library(folder: Path) -> None:
    with rlite_pubsub.Redis(folder, client_name="me", protocol=2) as client:
        (shown,) = client.client_list()
        assert (shown["name"], shown["lib-name"]) == ("me", "redis-py")


def test_ping_while_subscribed_is_answered_as_a_message(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        pubsub.ping("are you there")
        pong = pubsub.get_message(timeout=PATIENCE_S)
        assert (pong["type"], pong["data"]) == ("pong", b"are you there")


def test_an_idle_pubsub_is_asked_for_its_health(folder: Path, protocol: int) -> None:
    with rlite_pubsub.Redis(folder, protocol=protocol, health_check_interval=1) as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        pubsub.connection.next_health_check = time.monotonic() - 1
        assert pubsub.get_message(timeout=0.01) is None  # the answer to PING, which is nobody's business
        assert pubsub.connection.next_health_check > time.monotonic()
        client.publish("news", "x")
        assert messages(pubsub, 1) == [b"x"]


def test_a_bare_unsubscribe_ends_this_pubsub_s_subscriptions_only(client: rlite_pubsub.Redis) -> None:
    with client.pubsub() as mine, client.pubsub() as other:
        mine.subscribe("a", "b")
        other.subscribe("c")
        confirmations(mine, 2)
        mine.unsubscribe()
        assert {name for _, name, _ in confirmations(mine, 2)} == {b"a", b"b"}
        assert client.pubsub_channels() == [b"c"]


def test_a_closed_pubsub_leaves_nothing(client: rlite_pubsub.Redis) -> None:
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    pubsub.close()
    assert client.pubsub_channels() == []
    assert client.publish("news", "x") == 0


def test_a_forgotten_pubsub_leaves_nothing(client: rlite_pubsub.Redis) -> None:
    client.pubsub().subscribe("news")
    assert client.publish("news", "x") == 0


def test_monitor_sees_every_publish_the_short_way_included(client: rlite_pubsub.Redis) -> None:
    client.publish("news", "before")
    with client.monitor() as monitor:
        client.publish("news", "seen")
        commands = []
        while not commands or not commands[-1].startswith("PUBLISH"):
            commands.append(monitor.next_command()["command"])
        assert commands[-1] == "PUBLISH news seen"


def test_info_counts_what_went_the_short_way(client: rlite_pubsub.Redis) -> None:
    for _ in range(5):
        client.publish("news", "x")
    assert client.info("commandstats")["cmdstat_publish"]["calls"] == 5


def test_a_response_callback_for_publish_is_called(client: rlite_pubsub.Redis) -> None:
    client.set_response_callback("PUBLISH", lambda receivers, **options: f"{receivers} received it")
    assert client.publish("news", "x") == "0 received it"


def test_a_killed_pubsub_subscribes_again_as_redis_py_does(folder: Path, protocol: int) -> None:
    retry = Retry(NoBackoff(), 3)
    with rlite_pubsub.Redis(folder, protocol=protocol, retry=retry) as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        assert client.execute_command("CLIENT", "KILL", "TYPE", "pubsub") == 1
        assert confirmations(pubsub, 1) == [("subscribe", b"news", 1)]
        client.publish("news", "again")
        assert messages(pubsub, 1) == [b"again"]


def test_a_killed_session_is_a_connection_error_without_retry(folder: Path) -> None:
    with rlite_pubsub.Redis(folder, retry=Retry(NoBackoff(), 0)) as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        with pytest.raises(redis.ConnectionError, match="closed by server"):
            pubsub.get_message(timeout=PATIENCE_S)


def test_publishing_waits_while_paused(folder: Path, protocol: int) -> None:
    retry = Retry(NoBackoff(), 0)
    with rlite_pubsub.Redis(folder, protocol=protocol, retry=retry) as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        client.execute_command("CLIENT", "PAUSE", 50, "WRITE")
        assert client.publish("news", "late") == 1
        assert messages(pubsub, 1) == [b"late"]


def test_a_store_opened_twice_is_one_environment(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with rlite_pubsub.Redis(folder) as first, rlite_pubsub.Redis(tmp_path / "link") as second:
        with first.pubsub() as pubsub:
            pubsub.subscribe("news")
            assert second.publish("news", "x") == 1
            assert messages(pubsub, 1) == [b"x"]


def test_a_closed_client_can_be_used_again(folder: Path) -> None:
    client = rlite_pubsub.Redis(folder)
    client.publish("news", "x")
    client.close()
    assert client.publish("news", "x") == 0
    assert client.ping()
    client.close()


def test_a_path_is_that_of_the_time_when_the_client_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with rlite_pubsub.Redis("./store") as client:
        monkeypatch.chdir("/")
        client.publish("news", "x")
        assert (tmp_path / "store" / "live.mdb").exists()


def test_a_file_in_the_place_of_the_folder_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    client = rlite_pubsub.Redis(tmp_path / "store")
    with pytest.raises(rlite_pubsub.StoreUnavailable, match="is not a folder"):
        client.publish("news", "x")
    with pytest.raises(rlite_pubsub.StoreUnavailable, match="is not a folder"):
        client.ping()


def test_the_store_is_its_owner_s_alone(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.publish("news", "x")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_password_is_of_no_use(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.config_set("requirepass", "secret")
        with rlite_pubsub.Redis(folder) as other:
            assert other.ping()
            assert other.publish("news", "x") == 0
