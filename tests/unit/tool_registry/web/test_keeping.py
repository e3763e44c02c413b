"""The cache of pages and the limit on searches."""

from __future__ import annotations

from wayline.tool_registry.web.expiring_cache import ExpiringCache
from wayline.tool_registry.web.rate_limit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_kept_for_its_time_only():
    clock = Clock()
    cache: ExpiringCache[str] = ExpiringCache(keep_s=10, max_bytes=100, clock=clock)
    cache.put("a", "1", size_bytes=10)
    clock.now = 9

    assert cache.get("a") == "1"
    clock.now = 10
    assert cache.get("a") is None
    assert cache.size_bytes == 0


def test_the_longest_unused_value_makes_room():
    cache: ExpiringCache[str] = ExpiringCache(keep_s=10, max_bytes=30, clock=Clock())
    for key in "abc":
        cache.put(key, key, size_bytes=10)
    cache.get("a")
    cache.put("d", "d", size_bytes=10)
    cache.put("large", "x", size_bytes=31)

    assert [cache.get(key) for key in ("a", "b", "c", "d", "large")] == ["a", None, "c", "d", None]
    assert cache.size_bytes == 30


def test_nothing_is_kept_where_keeping_is_switched_off():
    cache: ExpiringCache[str] = ExpiringCache(keep_s=0, max_bytes=30)
    cache.put("a", "1", size_bytes=1)

    assert cache.get("a") is None


def test_each_tenant_has_its_own_calls_in_a_minute():
    clock = Clock()
    limit = RateLimit(2, clock=clock)

    assert [limit.take("a"), limit.take("a"), limit.take("a"), limit.take("b")] == [0, 0, 30, 0]
    clock.now = 15
    assert limit.take("a") == 15
    clock.now = 30
    assert (limit.take("a"), limit.take("a")) == (0, 30)
