"""Pages of a list, and positions in it."""

from datetime import datetime
from typing import Generic, TypeVar

from slotlock.domain.shared.value_object import value_object

Item = TypeVar("Item")
End = TypeVar("End")

# No list counts more items.
MAX_COUNT = 1_000


@value_object
class Position:
    """The last item a reader has seen, in a list ordered by start time and id."""

    start: datetime
    id: str


@value_object
class TitlePosition:
    """The last item a reader has seen, in a list ordered by the sort key of a title and id."""

    sort_key: str
    id: str


@value_object
class Page(Generic[Item]):
    """Some items in order, and whether more follow."""

    items: tuple[Item, ...]
    has_more: bool


@value_object
class SearchedPage(Page[Item], Generic[Item, End]):
    """Some items that a bounded search found, and the position up to which it searched.

    The page can end before it is full, and may then have fewer items, or none.
    """

    searched_until: End | None


def exact_count(count: int) -> int | None:
    """Return a count that stopped after `MAX_COUNT`; None if there are more items."""
    return count if count <= MAX_COUNT else None
