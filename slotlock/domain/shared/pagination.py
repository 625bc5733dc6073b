"""Pages of a list, and positions in it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Position:
    """The last item a reader has seen, in a list ordered by start time and id."""

    start: datetime
    id: str


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some items in order, and whether more follow."""

    items: tuple[Item, ...]
    has_more: bool
