"""A server in a thread of its own: for tests, notebooks and programs that want a port but no process."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from types import TracebackType
from urllib.parse import quote

from rlite_pubsub.engine.settings.settings import SettingError, Settings, split
from rlite_pubsub.server.event_loop import new_event_loop
from rlite_pubsub.server.node import Node


class Server:
    """`with Server() as server: redis.Redis(port=server.port)`

    Without `port` a free one is chosen, without `dir` the store is temporary. Every other keyword is a directive of the
    config file, with underscores for dashes: `Server(requirepass="secret", maxclients=10)`.
    Raises StartupError where redis-server would not start, SettingError for a bad directive.
    """

    def __init__(self, *, port: int | None = None, dir: str | None = None, **directives: object) -> None:
        self._any_port = port is None
        self._folder = dir
        self._temporary: str | None = None
        self._directives = {"port": port or 0, **directives}
        self._settings = _settings(self._directives)
        self._node: Node | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    host = "127.0.0.1"

    @property
    def port(self) -> int:
        """The TCP port that it listens on."""
        assert self._node is not None, "the server is not running"
        return self._node.port

    @property
    def url(self) -> str:
        """For `redis.from_url` and its kin, with the password if there is one."""
        password = quote(self._settings["requirepass"], safe="")
        return f"redis://{f':{password}@' if password else ''}{self.host}:{self.port}/0"

    def start(self) -> Server:
        """Returns once it listens."""
        if self._folder is None:
            self._folder = self._temporary = tempfile.mkdtemp(prefix="rlite-pubsub-")
        self._settings = _settings(self._directives)
        self._settings.set("dir", [self._folder.encode()])
        self._started.clear()
        self._thread = threading.Thread(target=self._run, name="rlite-pubsub", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._thread.join()
            self._thread = None
            self._remove_temporary()
            raise failure
        return self

    def stop(self) -> None:
        """Returns once everything is closed and, if it was temporary, the store is gone."""
        if self._thread is None or self._loop is None or self._node is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: a client has shut it down already
            self._loop.call_soon_threadsafe(self._node.stop_soon)
        self._thread.join()
        self._thread = None
        self._remove_temporary()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        self._loop = loop = new_event_loop(speaks_http=self._settings.asks_for_http)
        try:
            loop.run_until_complete(self._serve(loop))
        except BaseException as failure:
            self._failure = failure
            self._started.set()
        finally:
            loop.close()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node = Node(self._settings, loop)
        node.start(any_port=self._any_port)
        self._started.set()
        await node.stopped.wait()
        await node.stop_gateway()
        node.stop()

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._folder = self._temporary = None


def _settings(directives: dict[str, object]) -> Settings:
    settings = Settings()
    for keyword, value in directives.items():
        name = keyword.replace("_", "-")
        try:
            if isinstance(value, list | tuple):
                settings.set(name, [_word(word) for word in value])
            else:
                settings.set(name, split(settings.directive(name), _word(value)))
        except SettingError as refusal:
            raise SettingError(f"{keyword}: {refusal}") from refusal
    return settings


def _word(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"yes" if value else b"no"
    return str(value).encode()
