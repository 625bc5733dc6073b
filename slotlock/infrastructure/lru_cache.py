"""A cache of bounded size that drops the least recently used entry first."""

from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """Values by text key; bounded by the number of entries and by the total length of the keys."""

    def __init__(self, max_entries: int, max_key_characters: int) -> None:
        self._max_entries = max_entries
        self._max_key_characters = max_key_characters
        self._entries: OrderedDict[str, Value] = OrderedDict()
        self._key_characters = 0

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> Value | None:
        """Return the value and mark it as used; None if the cache does not hold the key."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: str, value: Value) -> None:
        """Store the value as the most recently used one."""
        if key not in self._entries:
            self._key_characters += len(key)
        self._entries[key] = value
        self._entries.move_to_end(key)
        while (
            len(self._entries) > self._max_entries
            or self._key_characters > self._max_key_characters
        ):
            dropped, _ = self._entries.popitem(last=False)
            self._key_characters -= len(dropped)

    def discard(self, key: str) -> None:
        """Remove the entry of the key, if there is one."""
        if key in self._entries:
            del self._entries[key]
            self._key_characters -= len(key)
