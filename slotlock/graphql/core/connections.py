"""Lists as Relay connections (relay.dev/graphql/connections.htm) with keyset cursors."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Generic, Self, TypeVar

import strawberry
from strawberry import field

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
Item = TypeVar("Item")
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
        nodes: list[Item],
        cursor_at: Callable[[int], str],
        *,
        has_more: bool,
        after: str | None,
        end_cursor: str | None = None,
        count: Count | None = None,
    ) -> None:
        self._nodes = nodes
        self._cursor_at = cursor_at
        self._has_more = has_more
        self._after = after
        self._end_cursor = end_cursor
        self._count = count

    @classmethod
    def from_items(
        cls,
        items: list[tuple[str, Item]],
        *,
        has_more: bool,
        after: str | None,
        end_cursor: str | None = None,
        count: Count | None = None,
    ) -> Self:
        """Build a page from items with their cursors; it ends at `end_cursor`, or the last item.

        `count` counts the items of the whole list, if a client asks for their number.
        """
        cursors = [cursor for cursor, _ in items]
        nodes = [node for _, node in items]
        return cls(
            nodes,
            cursors.__getitem__,
            has_more=has_more,
            after=after,
            end_cursor=end_cursor,
            count=count,
        )

    @property_field(description="The items with their cursors.")
    def edges(self) -> list[Edge[Item]]:
        return [
            Edge(cursor=self._cursor_at(index), node=node) for index, node in enumerate(self._nodes)
        ]

    @property_field(description="The items without cursors.")
    def nodes(self) -> list[Item]:
        return self._nodes

    @property_field(description="The position of this page in the list.")
    def page_info(self) -> PageInfo:
        last = len(self._nodes) - 1
        return PageInfo(
            has_next_page=self._has_more,
            has_previous_page=self._after is not None,
            start_cursor=self._cursor_at(0) if self._nodes else None,
            end_cursor=self._end_cursor or (self._cursor_at(last) if self._nodes else None),
        )

    @field(
        description="How many items the whole list has at the moment, on all pages; null for more "
        "than 1,000, and for lists that are expensive to count."
    )
    async def total_count(self) -> int | None:
        return await self._count() if self._count is not None else None


def require_valid_first(first: int) -> int:
    """Return the requested page size. Errors: BAD_USER_INPUT."""
    if not 1 <= first <= MAX_LIST_SIZE:
        raise bad_input("first", f"`first` must be a number from 1 to {MAX_LIST_SIZE}.")
    return first
