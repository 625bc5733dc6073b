"""Lists as Relay connections (relay.dev/graphql/connections.htm) with keyset cursors."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Generic, Self, TypeVar

import strawberry
from strawberry import field

from slotlock.domain.shared.pagination import (
    Page,
    Position,
    SearchedPage,
    TimeFilter,
    TimeOrder,
    TimePage,
    UpcomingPosition,
)
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.cursors import BY_TIME, BY_UPCOMING, ListCursors, PositionKind
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.node import property_field

# The longest page of a list, and the largest number of ids in one request.
MAX_LIST_SIZE = 100
DEFAULT_FIRST = 20

First = Annotated[int, strawberry.argument(description="The maximum number of items, 1 to 100.")]
After = Annotated[
    str | None,
    strawberry.argument(description="Return the items after this cursor of the same list."),
]
OrderByTime = Annotated[TimeOrder, strawberry.argument(description="The order of the list.")]
Row = TypeVar("Row")
Item = TypeVar("Item")
At = TypeVar("At")
Count = Callable[[], Awaitable[int | None]]


@strawberry.type(description="The position of a page in its list.")
class PageInfo:
    has_next_page: bool = strawberry.field(description="Whether more items follow this page.")
    has_previous_page: bool = strawberry.field(description="Whether `after` skipped items.")
    start_cursor: str | None = strawberry.field(
        description="The cursor of the first item, or null for an empty page."
    )
    end_cursor: str | None = strawberry.field(
        description="The value of `after` that requests the next page."
    )


@strawberry.type(description="An item of a list with its cursor.")
class Edge(Generic[Item]):
    cursor: str = strawberry.field(description="The position of the item, to use as `after`.")
    node: Item = strawberry.field(description="The item.")


@strawberry.type(description="One page of a list.")
class Connection(Generic[Item]):
    def __init__(
        self,
        page: Page[Any],
        nodes: Sequence[Any],
        cursors: ListCursors[Any],
        after: str | None,
        count: Count | None = None,
    ) -> None:
        """Show the items of a page, as `nodes`, which follows the cursor `after`.

        `count` counts the items of the whole list, if a client asks for their number.
        """
        self._page = page
        self._nodes = nodes
        self._cursors = cursors
        self._after = after
        self._count = count

    @classmethod
    def of_page(
        cls,
        page: Page[Row],
        show: Callable[[Row], Item | None],
        cursors: ListCursors[Any],
        after: str | None,
        count: Count | None = None,
    ) -> Self:
        """Show the items of a page, without those of which `show` returns None."""
        shown = [(item, node) for item in page.items if (node := show(item)) is not None]
        page = replace(page, items=tuple(item for item, _ in shown))
        return cls(page, [node for _, node in shown], cursors, after, count)

    @property_field(description="The items with their cursors.")
    def edges(self) -> list[Edge[Item]]:
        return [
            Edge(cursor=self._cursors.of_item(item), node=node)
            for item, node in zip(self._page.items, self._nodes, strict=True)
        ]

    @property_field(description="The items without cursors.")
    def nodes(self) -> list[Item]:
        return list(self._nodes)

    @property_field(description="The position of this page in the list.")
    def page_info(self) -> PageInfo:
        items, cursors = self._page.items, self._cursors
        end = self._page.searched_until if isinstance(self._page, SearchedPage) else None
        last_cursor = cursors.of_item(items[-1]) if items else None
        return PageInfo(
            has_next_page=self._page.has_more,
            has_previous_page=bool(self._after),
            start_cursor=cursors.of_item(items[0]) if items else None,
            end_cursor=last_cursor if end is None else cursors.encode(end),
        )

    @field(
        description="How many items the whole list has at the moment, on all pages; null for more "
        "than 1,000, and for lists that are expensive to count."
    )
    async def total_count(self) -> int | None:
        return await self._count() if self._count is not None else None


def page_start(cursors: ListCursors[At], first: int, after: str | None) -> tuple[int, At | None]:
    """Return the size of the requested page and the position that it follows.

    Errors: BAD_USER_INPUT.
    """
    if not 1 <= first <= MAX_LIST_SIZE:
        raise bad_input("first", f"`first` must be a number from 1 to {MAX_LIST_SIZE}.")
    return first, cursors.decode(after)


@strawberry.input(
    name="TimeFilter",
    description="What to list by its time. A field that is left out matches everything. A campaign "
    "starts when it opens, and ends when it closes.",
)
class TimeFilterInput:
    include_past: bool = field(default=True, description="Whether to list what is over as well.")
    starts_from: datetime | None = field(
        default=None, description="Only what starts at this time or later."
    )
    starts_before: datetime | None = field(
        default=None, description="Only what starts before this time."
    )
    ends_before: datetime | None = field(
        default=None,
        description="Only what ends at this time or before: with the current time, what is over.",
    )

    def to_domain(self) -> TimeFilter:
        """Convert the filter to the domain's. Errors: BAD_USER_INPUT."""
        require_valid_period("startsFrom", self.starts_from, "startsBefore", self.starts_before)
        return TimeFilter(self.include_past, self.starts_from, self.starts_before, self.ends_before)


FilterByTime = Annotated[
    TimeFilterInput | None, strawberry.argument(description="What to list by its time.")
]


class TimeList(Generic[Row]):
    """A list by time, in each order of which its cursors are others."""

    def __init__(
        self, list_name: str, times_of: Callable[[Row], tuple[datetime, datetime, str]]
    ) -> None:
        """Name the list. `times_of` returns the start, the end and the id of an item."""
        self._list_name = list_name
        self._times_of = times_of

    def page(
        self,
        wanted: TimeFilterInput | None,
        order: TimeOrder,
        first: int,
        after: str | None,
        now: datetime,
    ) -> tuple[TimePage, ListCursors[Any]]:
        """Return the requested page, and the cursors of its items. Errors: BAD_USER_INPUT."""

        def position_of(item: Row) -> Position:
            return page.position_of(*self._times_of(item))

        is_upcoming_first = order is TimeOrder.UPCOMING_FIRST
        kind: PositionKind[Any] = BY_UPCOMING if is_upcoming_first else BY_TIME
        cursors = ListCursors[Any](self._list_name, kind, position_of)
        size, position = page_start(cursors, first, after)
        as_of = position.as_of if isinstance(position, UpcomingPosition) else now
        time_filter = (wanted or TimeFilterInput()).to_domain()
        page = TimePage(time_filter, order, size, position, as_of)
        return page, cursors
