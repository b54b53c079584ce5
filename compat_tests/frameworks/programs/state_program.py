"""What frameworks keep for a program: kept by this one (`keep`), found again by its own clients once the server was
killed (the file `go on` says so), and by another process (`check`)."""

import asyncio
import os
import sys

from place import URL, client

assert URL
os.environ["REDIS_OM_URL"] = URL

import django  # noqa: E402
from aiocache import Cache  # noqa: E402
from aiocache.serializers import PickleSerializer  # noqa: E402
from django.conf import settings  # noqa: E402
from flask import Flask, session  # noqa: E402
from flask_limiter import Limiter  # noqa: E402
from flask_session import Session  # noqa: E402
from limits import parse  # noqa: E402
from limits.storage import RedisStorage  # noqa: E402
from limits.strategies import MovingWindowRateLimiter  # noqa: E402
from redis.exceptions import ConnectionError  # noqa: A004, E402
from redis_om import HashModel  # noqa: E402

PORT = int(URL.rsplit(":", 1)[1])
BACKENDS = {"default": "django_redis.cache.RedisCache", "own": "django.core.cache.backends.redis.RedisCache"}
settings.configure(CACHES={name: {"BACKEND": backend, "LOCATION": URL} for name, backend in BACKENDS.items()})
django.setup()

from django.core.cache import caches  # noqa: E402


class Customer(HashModel, index=True):
    name: str


app = Flask(__name__)
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client(), SECRET_KEY="secret")
Session(app)
Limiter(lambda: "all", app=app, storage_uri=URL, default_limits=["4/hour"])


@app.route("/")
def count() -> str:
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])


limiter = MovingWindowRateLimiter(RedisStorage(URL))
LIMIT = parse("10/hour")
visitor = app.test_client()
aio = Cache(Cache.REDIS, endpoint="127.0.0.1", port=PORT, namespace="aio", serializer=PickleSerializer())


async def keep() -> None:
    for name in BACKENDS:
        caches[name].set(f"in-{name}", {"a": 1}, timeout=600)
    await aio.set("a", {"b": 1}, ttl=600)
    Customer(pk="ada", name="Ada").save()
    assert [visitor.get("/").text for _ in range(2)] == ["1", "2"]
    assert all(limiter.hit(LIMIT, "me") for _ in range(6))


async def find(times: int) -> None:
    """For this many times, the limits' being the sum of all processes."""
    for name in BACKENDS:
        assert caches[name].get(f"in-{name}") == {"a": 1}, name
    try:
        cached = await aio.get("a")
    except ConnectionError:  # aiocache tells of a connection that has gone, and has a new one the next time
        cached = await aio.get("a")
    assert cached == {"b": 1}
    assert Customer.get("ada").name == "Ada"
    assert limiter.get_window_stats(LIMIT, "me").remaining == 4 - times
    assert limiter.hit(LIMIT, "me")
    if times == 0:  # it is the same visitor
        assert visitor.get("/").text == "3"
    assert visitor.get("/").status_code == (200 if times == 0 else 429)


async def main(part: str) -> None:
    if part == "keep":
        await keep()
        print("kept", flush=True)
        while not os.path.exists("go on"):
            await asyncio.sleep(0.02)
        await find(0)
        print("found", flush=True)
        await asyncio.sleep(3600)
    await find(1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
    print("done", flush=True)
