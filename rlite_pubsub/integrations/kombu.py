"""kombu's transport `rlite:///path/of/the/store`: queues of tasks with no server. To import it is to register it.

    import rlite_pubsub.integrations.kombu

    kombu.Connection("rlite:///./store")        # relative to the working directory; rlite:///srv/store is absolute

It is kombu's own transport for Redis over the embedded client, so that all of its options hold (`visibility_timeout`,
`priority_steps`, `global_keyprefix`, ...), and so that programs with `redis://` on a server of the same folder take
part. What differs is the waiting: our descriptor (embedded/polled.py) may be readable when nothing has come, and
somebody must look now and then, which the poller does.
"""

from __future__ import annotations

from queue import Empty
from typing import TYPE_CHECKING, Any

from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as over_redis

from rlite_pubsub.embedded.client import Redis, pool_of
from rlite_pubsub.embedded.errors import StoreUnavailable
from rlite_pubsub.embedded.options import SCHEME, options_of
from rlite_pubsub.embedded.polled import PolledConnection
from rlite_pubsub.version import __version__

if TYPE_CHECKING:
    from redis.connection import ConnectionPool

    from rlite_pubsub.embedded.host import Host

LOOK_SECONDS = 1.0
"""The longest wait without a look, in an event loop that knows only its own timers."""


class StorePoller(over_redis.MultiChannelPoller):
    """kombu's poller, which looks before it waits and does not wait for too long."""

    look_timer: Any = None
    loop: Any = None  # kombu's, where there is one
    _looks_again = False

    def on_poll_start(self) -> None:
        self.look()
        super().on_poll_start()

    def get(self, callback: Any, timeout: float | None = None) -> None:
        self.look(surely=True)
        patience_s = self._patience_s()
        super().get(callback, patience_s if timeout is None else min(timeout, patience_s))

    def look(self, surely: bool = False) -> None:
        """Take in what others have done, and do what is due."""
        for host in self._hosts():
            host.look(surely=surely)

    def look_again(self) -> None:
        """Look again after a ring that brought nothing: whoever rang may still have been writing. Messages put off
        until then have a timer that the loop does not know of."""
        patience_s = self._patience_s()
        if self.loop is not None and not self._looks_again and patience_s < LOOK_SECONDS:
            self._looks_again = True
            self.loop.call_later(patience_s, self._look_in_time)

    def _look_in_time(self) -> None:
        self._looks_again = False
        self.look()
        self.look_again()

    def _patience_s(self) -> float:
        """Return for how long nobody needs to look."""
        return min((host.patience_s() for host in self._hosts()), default=LOOK_SECONDS)

    def _hosts(self) -> set[Host]:
        return {line.host for line in self._chan_to_sock.values() if line.host.is_open}


class Channel(over_redis.Channel):
    """kombu's channel. Its connections are sessions of this process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.handlers = {"BRPOP": self._on_popped, "LISTEN": self._on_published}

    def _on_popped(self) -> Any:
        if not self.client.connection.can_read(timeout=0):
            self.connection.cycle.look_again()
            raise Empty
        return self._brpop_read()

    def _on_published(self) -> Any:
        connection = self.subclient.connection
        if connection is None or not connection.can_read(timeout=0):
            raise Empty
        return self._receive()

    def _get_pool(self, asynchronous: bool = False) -> ConnectionPool:
        options = {"client_name": self.client_name, "max_connections": self.max_connections}
        options.update(options_of(self.connection.client.hostname))
        path, db = options.pop("path"), int(options.pop("db", 0))
        self.keyprefix_fanout: str = self.keyprefix_fanout.format(db=db)
        pool = pool_of(path, db, options)
        if asynchronous:
            pool.connection_class = _polled_by(self)
        return pool

    def _get_client(self) -> Any:
        client = super()._get_client()
        return client if self.global_keyprefix else Redis


def _polled_by(channel: Channel) -> type[PolledConnection]:
    class Polled(PolledConnection):
        def disconnect(self, *args: Any, **kwargs: Any) -> None:
            super().disconnect(*args, **kwargs)  # type: ignore[no-untyped-call]
            if channel._registered:
                channel._on_connection_disconnect(self)

    return Polled


class Transport(over_redis.Transport):
    """`rlite://`."""

    Channel = Channel
    can_parse_url = True
    """The whole URL is kept: its path is a folder, and no name of a virtual host."""
    default_port = None
    driver_type = driver_name = "rlite"
    connection_errors = (*over_redis.Transport.connection_errors, StoreUnavailable)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cycle = StorePoller()

    def driver_version(self) -> str:
        return __version__

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        super().register_with_event_loop(connection, loop)
        cycle = self.cycle
        cycle.loop = loop
        if cycle.look_timer is not None:
            cycle.look_timer.cancel()
        cycle.look_timer = loop.call_repeatedly(LOOK_SECONDS, cycle.look, True)


TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"
