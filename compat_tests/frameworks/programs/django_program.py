"""Django's cache by django-redis, and by Django itself where there is a server."""

import django
from django.conf import settings
from place import URL

caches = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": URL or "rlite:///./store",
        "OPTIONS": {}
        if URL
        else {"CONNECTION_FACTORY": "rlite_pubsub.integrations.django_redis.ConnectionFactory"},
    }
}
if URL:
    caches["own"] = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": URL}
settings.configure(CACHES=caches, SESSION_ENGINE="django.contrib.sessions.backends.cache", USE_TZ=True)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import caches as by_name  # noqa: E402

for name in caches:
    cache = by_name[name]
    cache.clear()
    cache.set("a", {"b": [1, 2.5, "ü"]}, timeout=60)
    assert cache.get("a") == {"b": [1, 2.5, "ü"]}
    assert cache.add("a", 2) is False and cache.add("c", 1, timeout=60) is True
    assert cache.incr("c", 4) == 5 and cache.decr("c") == 4
    cache.set_many({"d": 1, "e": 2}, timeout=60)
    assert cache.get_many(["d", "e", "f"]) == {"d": 1, "e": 2}
    assert cache.get_or_set("g", lambda: 7) == 7
    assert cache.touch("d", 1000) is True and cache.has_key("d")
    assert cache.delete_many(["d", "e"]) in (2, None) and cache.get("d") is None
    cache.set("now", 1, timeout=0)
    assert cache.get("now") is None
    cache.set("versioned", 1, version=2)
    assert cache.get("versioned") is None and cache.get("versioned", version=2) == 1
cache = by_name["default"]
assert 0 < cache.ttl("a") <= 60
assert sorted(cache.keys("*")) == ["a", "c", "g"] == sorted(cache.iter_keys("*"))
assert cache.delete_pattern("?") == 3
with cache.lock("lock", timeout=10):
    assert not cache.lock("lock", timeout=10).acquire(blocking=False)
assert cache.lock("lock", timeout=10).acquire(blocking=False)
session = SessionStore()
session["user"] = 4711
session.save()
assert SessionStore(session.session_key)["user"] == 4711
print("done", flush=True)
