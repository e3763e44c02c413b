"""Vectors within a limit of bytes."""

from __future__ import annotations

import numpy as np

from wayline.tool_registry.tool_search.vector_cache import VectorCache

VECTOR = np.ones(4, "<f4")


def filled(*keys: str, room: int) -> VectorCache:
    cache = VectorCache(max_bytes=room * VECTOR.nbytes)
    for key in keys:
        cache.keep(key, VECTOR)
    return cache


def kept(cache: VectorCache) -> str:
    return "".join(key for key in "abcd" if key in cache)


def test_the_vector_used_longest_ago_makes_room():
    cache = filled("a", "b", "c", room=3)

    cache.use(["a", "unknown"])

    assert cache.keep("d", VECTOR) == 1
    assert kept(cache) == "acd"


def test_a_vector_kept_twice_takes_its_room_once():
    cache = filled("a", "b", room=3)

    assert [cache.keep("b", VECTOR), cache.keep("b", VECTOR), cache.keep("c", VECTOR)] == [0, 0, 0]
    assert kept(cache) == "abc"


def test_a_cleared_cache_has_its_whole_room():
    cache = filled("a", "b", room=2)

    cache.clear()

    assert kept(cache) == ""
    assert [cache.keep("c", VECTOR), cache.keep("d", VECTOR)] == [0, 0]
    assert cache.room(VECTOR) == 2
