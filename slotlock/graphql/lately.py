"""What was made of the texts seen lately, as far as there is room."""

from collections import OrderedDict
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Lately(Generic[Made]):
    """At most so many texts and characters of them; the least recently used is forgotten first."""

    def __init__(self, most_texts: int, most_characters: int) -> None:
        self._most_texts = most_texts
        self._most_characters = most_characters
        self._made: OrderedDict[str, Made] = OrderedDict()
        self._characters = 0

    def __contains__(self, text: str) -> bool:
        return text in self._made

    def find(self, text: str) -> Made | None:
        """What was made of a text, if that is still known."""
        made = self._made.get(text)
        if made is not None:
            self._made.move_to_end(text)
        return made

    def keep(self, text: str, made: Made) -> None:
        """Remember what was made of a text that was not found."""
        self._made[text] = made
        self._characters += len(text)
        while len(self._made) > self._most_texts or self._characters > self._most_characters:
            forgotten, _ = self._made.popitem(last=False)
            self._characters -= len(forgotten)
