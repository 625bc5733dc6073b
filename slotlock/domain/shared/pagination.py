"""Pages of a list, and positions in it."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Generic, Self, TypeVar

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
class UpcomingPosition(Position):
    """The last item a reader has seen, in a list with what was not over at `as_of` first.

    Every page of the list has the same `as_of`, so that no item ends between two pages.
    """

    as_of: datetime
    is_over: bool


class TimeOrder(Enum):
    """The order of what starts and ends; what starts at the same time is in the order of ids."""

    UPCOMING_FIRST = "upcomingFirst"
    START_ASC = "startAsc"
    START_DESC = "startDesc"


@value_object
class TimeFilter:
    """What to list by its start and end; None means any time. Only `starts_from` is inclusive."""

    include_past: bool = True
    starts_from: datetime | None = None
    starts_before: datetime | None = None
    ends_before: datetime | None = None


@value_object
class TimePage:
    """The next `first` items of a list by time, after a position. What ended by `as_of` is over."""

    wanted: TimeFilter
    order: TimeOrder
    first: int
    after: Position | None
    as_of: datetime

    def position_of(self, start: datetime, end: datetime, id_: str) -> Position:
        """Return the position of an item in this order."""
        if self.order is TimeOrder.UPCOMING_FIRST:
            return UpcomingPosition(start, id_, self.as_of, end <= self.as_of)
        return Position(start, id_)


@value_object
class Page(Generic[Item]):
    """Some items in order, and whether more follow."""

    items: tuple[Item, ...]
    has_more: bool

    @classmethod
    def of(cls, found: Sequence[Item], first: int) -> Self:
        """Return the first items of those found, of which one more than them was asked for."""
        return cls(tuple(found[:first]), len(found) > first)


@value_object
class SearchedPage(Page[Item], Generic[Item, End]):
    """Some items that a bounded search found, and the position up to which it searched.

    The page can end before it is full, and may then have fewer items, or none.
    """

    searched_until: End | None


def exact_count(count: int) -> int | None:
    """Return a count that stopped after `MAX_COUNT`; None if there are more items."""
    return count if count <= MAX_COUNT else None
