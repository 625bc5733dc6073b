"""Lists as Relay connections (relay.dev/graphql/connections.htm) with keyset cursors."""

from typing import Annotated, Generic, Self, TypeVar

import strawberry

from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.limits.complexity import MAX_LIST_SIZE
from slotlock.graphql.slots.types import Booking, Slot

MAX_FIRST = MAX_LIST_SIZE
DEFAULT_FIRST = 20

First = Annotated[int, strawberry.argument(description="How many items at most, 1 to 100.")]
After = Annotated[
    str | None, strawberry.argument(description="The cursor after which the list goes on.")
]
Item = TypeVar("Item")


@strawberry.type(description="Where a page stands in its list.")
class PageInfo:
    has_next_page: bool = strawberry.field(description="Whether more items follow.")
    has_previous_page: bool = strawberry.field(description="Whether items came before.")
    start_cursor: str | None = strawberry.field(description="The first item's cursor.")
    end_cursor: str | None = strawberry.field(description="The last item's cursor.")


@strawberry.type(description="An item in a list.")
class Edge(Generic[Item]):
    cursor: str = strawberry.field(description="Where the item stands, to go on after it.")
    node: Item = strawberry.field(description="The item.")


@strawberry.type(description="A page of a list.")
class Connection(Generic[Item]):
    edges: list[Edge[Item]] = strawberry.field(description="The items with their cursors.")
    nodes: list[Item] = strawberry.field(description="The items alone.")
    page_info: PageInfo = strawberry.field(description="Where this page stands.")

    @classmethod
    def from_items(
        cls, items: list[tuple[str, Item]], *, has_more: bool, after: str | None
    ) -> Self:
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


SlotConnection = Connection[Slot]
BookingConnection = Connection[Booking]


def require_valid_first(first: int) -> int:
    """How many items were asked for. Errors: BAD_USER_INPUT."""
    if not 1 <= first <= MAX_FIRST:
        raise GraphQLRequestError(
            ErrorCode.BAD_USER_INPUT, f"`first` is a number from 1 to {MAX_FIRST}."
        )
    return first
