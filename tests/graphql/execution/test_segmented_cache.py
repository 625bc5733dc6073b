"""A cache in which what one client adds does not evict what is in use."""

import pytest

from slotlock.graphql.execution.segmented_cache import PROBATION_S, SegmentedCache


class Clock:
    """A clock of the test, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock that the test moves."""
    return Clock()


def add_many(cache: SegmentedCache[int], client: str) -> None:
    """Add more entries than the cache has room for."""
    for number in range(11):
        cache.put(f"{client}{number}", number, client)


@pytest.mark.parametrize(
    ("second_client", "later_s", "stays"),
    [("a", 0.0, False), ("a", PROBATION_S - 1, False), ("a", PROBATION_S, True), ("b", 0.0, True)],
)
def test_an_entry_stays_if_a_second_client_uses_it_or_the_same_one_later(
    clock: Clock, second_client: str, later_s: float, stays: bool
) -> None:
    cache: SegmentedCache[int] = SegmentedCache(10, 1_000, clock)
    cache.put("used", 1, "a")
    clock.now += later_s
    assert cache.use("used", second_client) == 1
    add_many(cache, "c")
    assert ("used" in cache) is stays
    assert cache.use("used", "a") == (1 if stays else None)


def test_entries_in_use_have_four_fifths_of_the_room_and_evict_each_other(clock: Clock) -> None:
    cache: SegmentedCache[int] = SegmentedCache(10, 1_000, clock)
    for number in range(11):
        cache.put(f"used{number}", number, "a")
        assert cache.use(f"used{number}", "b") == number
    add_many(cache, "c")
    assert sum(f"used{number}" in cache for number in range(11)) == 8
    assert sum(f"c{number}" in cache for number in range(11)) == 2


def test_new_entries_have_a_fifth_of_the_characters(clock: Clock) -> None:
    cache: SegmentedCache[int] = SegmentedCache(100, 50, clock)
    cache.put("123456", 1, "a")
    cache.put("abcdef", 2, "a")
    assert ("123456" in cache, "abcdef" in cache) == (False, True)
