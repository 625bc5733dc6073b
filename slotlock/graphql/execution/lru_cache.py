"""What was made of the texts seen lately, as far as there is room."""

from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """At most so many texts and characters of them; the least recently used is forgotten first."""

    def __init__(self, max_entries: int, max_characters: int) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._entries: OrderedDict[str, Value] = OrderedDict()
        self._characters = 0

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> Value | None:
        """What was made of a text, if that is still known."""
        made = self._entries.get(key)
        if made is not None:
            self._entries.move_to_end(key)
        return made

    def put(self, key: str, value: Value) -> None:
        """Remember what was made of a text that was not found."""
        self._entries[key] = value
        self._characters += len(key)
        while len(self._entries) > self._max_entries or self._characters > self._max_characters:
            forgotten, _ = self._entries.popitem(last=False)
            self._characters -= len(forgotten)
