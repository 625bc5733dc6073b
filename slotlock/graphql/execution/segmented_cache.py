"""A cache in two segments, so that what one client adds does not evict what is in use."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from slotlock.infrastructure.bounded_cache import BoundedCache

Value = TypeVar("Value")
# After this time, a client that uses an entry again uses it for longer than a burst takes.
PROBATION_S = 10.0


@dataclass(frozen=True, slots=True)
class _New(Generic[Value]):
    value: Value
    client: str | None
    since: float


class SegmentedCache(Generic[Value]):
    """Values by text key, of which four fifths of the room are for those in use.

    A new entry moves to `protected` when a second client uses it, or the same client PROBATION_S
    later. Until then only other new entries evict it, and it evicts only those (segmented LRU,
    Karedla, Love and Wherry 1994). A read of `protected` is one of a dictionary, see BoundedCache.
    """

    def __init__(
        self, max_entries: int, max_key_characters: int, clock: Callable[[], float] = monotonic
    ) -> None:
        new_entries, new_characters = max_entries // 5, max_key_characters // 5
        self.protected: BoundedCache[Value] = BoundedCache(
            max_entries - new_entries, max_key_characters - new_characters
        )
        self._new: BoundedCache[_New[Value]] = BoundedCache(new_entries, new_characters)
        self._clock = clock

    def __contains__(self, key: str) -> bool:
        """Return whether there is an entry."""
        return key in self.protected or key in self._new

    def use(self, key: str, client: str | None) -> Value | None:
        """Return the value for a client that uses it; None if there is none."""
        value = self.protected.get(key)
        if value is not None:
            self.protected.used.add(key)
            return value
        new = self._new.get(key)
        if new is None:
            return None
        if self._is_in_use(new, client):
            self._new.discard(key)
            self.protected.put(key, new.value)
        return new.value

    def _is_in_use(self, new: _New[Value], client: str | None) -> bool:
        return client != new.client or self._clock() - new.since >= PROBATION_S

    def put(self, key: str, value: Value, client: str | None) -> None:
        """Store a value that a client is the first to use."""
        self._new.put(key, _New(value, client, self._clock()))
