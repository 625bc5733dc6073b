"""The cache: bounded by entries and by the length of its keys."""

from slotlock.infrastructure.bounded_cache import BoundedCache


def test_the_oldest_entry_is_dropped_first() -> None:
    cache: BoundedCache[int] = BoundedCache(max_entries=2, max_key_characters=100)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 1)
    cache.put("c", 3)
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)


def test_an_entry_that_is_used_outlives_those_that_are_not() -> None:
    cache: BoundedCache[int] = BoundedCache(max_entries=3, max_key_characters=100)
    for key in ("used", "a", "b", "c", "d", "e"):
        cache.put(key, 1)
        cache.used.add("used")
    assert list(cache) == ["used", "d", "e"]


def test_the_total_length_of_the_keys_is_bounded() -> None:
    cache: BoundedCache[int] = BoundedCache(max_entries=100, max_key_characters=10)
    cache.put("a" * 6, 1)
    cache.put("b" * 4, 2)
    assert "a" * 6 in cache
    cache.put("c", 3)
    assert cache.get("a" * 6) is None
    assert cache.get("b" * 4) == 2


def test_a_key_that_is_stored_again_counts_once() -> None:
    cache: BoundedCache[int] = BoundedCache(max_entries=100, max_key_characters=10)
    for value in range(5):
        cache.put("key", value)
    cache.put("other", 1)
    assert cache.get("key") == 4


def test_a_key_that_is_discarded_leaves_its_room_to_others() -> None:
    cache: BoundedCache[int] = BoundedCache(max_entries=100, max_key_characters=10)
    cache.put("a" * 6, 1)
    cache.put("b" * 4, 2)
    cache.discard("a" * 6)
    cache.discard("a" * 6)
    cache.put("c" * 6, 3)
    assert ("a" * 6 in cache, cache.get("b" * 4), cache.get("c" * 6)) == (False, 2, 3)
