"""Lists as Relay connections (relay.dev/graphql/connections.htm) with keyset cursors."""

from typing import Annotated, Generic, Self, TypeVar

import strawberry

from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError

# The longest page of a list, and the largest number of ids in one request.
MAX_LIST_SIZE = 100
DEFAULT_FIRST = 20

First = Annotated[int, strawberry.argument(description="The maximum number of items, 1 to 100.")]
After = Annotated[
    str | None,
    strawberry.argument(description="Return the items after this cursor of the same list."),
]
Item = TypeVar("Item")


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
    edges: list[Edge[Item]] = strawberry.field(description="The items with their cursors.")
    nodes: list[Item] = strawberry.field(description="The items without cursors.")
    page_info: PageInfo = strawberry.field(description="The position of this page in the list.")

    @classmethod
    def from_items(
        cls, items: list[tuple[str, Item]], *, has_more: bool, after: str | None
    ) -> Self:
        """Build a page from items with their cursors."""
        return cls(
            edges=[Edge(cursor=cursor, node=node) for cursor, node in items],
            nodes=[node for _, node in items],
            page_info=PageInfo(
                has_next_page=has_more,
                has_previous_page=after is not None,
                start_cursor=items[0][0] if items else None,
                end_cursor=items[-1][0] if items else None,
            ),
        )


def require_valid_first(first: int) -> int:
    """Return the requested page size. Errors: BAD_USER_INPUT."""
    if not 1 <= first <= MAX_LIST_SIZE:
        raise GraphQLRequestError(
            ErrorCode.BAD_USER_INPUT, f"`first` must be a number from 1 to {MAX_LIST_SIZE}."
        )
    return first
