"""A cache of bounded size that drops the oldest entry first, unless it was used."""

from typing import TypeVar

Value = TypeVar("Value")


class BoundedCache(dict[str, Value]):
    """Values by text key; bounded by the number of entries and by the total length of the keys.

    A read is one of a dictionary, because each request reads several caches. A reader that adds the
    key to `used` gives its entry a second chance.
    """

    def __init__(self, max_entries: int, max_key_characters: int) -> None:
        super().__init__()
        self.used = set[str]()
        self._max_entries = max_entries
        self._max_key_characters = max_key_characters
        self._key_characters = 0

    def put(self, key: str, value: Value) -> None:
        """Store the value as the newest one."""
        self.discard(key)
        self[key] = value
        self._key_characters += len(key)
        while len(self) > self._max_entries or self._key_characters > self._max_key_characters:
            oldest = next(iter(self))
            if oldest in self.used:
                self.used.discard(oldest)
                self[oldest] = self.pop(oldest)
            else:
                self.discard(oldest)

    def discard(self, key: str) -> None:
        """Remove the entry of the key, if there is one."""
        self.used.discard(key)
        if self.pop(key, None) is not None:
            self._key_characters -= len(key)
