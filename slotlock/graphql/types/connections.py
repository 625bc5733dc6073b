"""Lists as Relay connections (relay.dev/graphql/connections.htm) with keyset cursors."""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Annotated, Generic, Self, TypeVar

import orjson
import strawberry

from slotlock.domain.listing import Position
from slotlock.domain.texts import line_problem
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.slots import Booking, Slot

MAX_FIRST = 100
DEFAULT_FIRST = 20
# The longest address there is (RFC 5321, 4.5.3.1), and as much again: longer than any name.
MAX_NAME = 640
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
    def of(cls, items: list[tuple[str, Item]], *, more: bool, after: str | None) -> Self:
        return cls(
            edges=[Edge(cursor=cursor, node=node) for cursor, node in items],
            nodes=[node for _, node in items],
            page_info=PageInfo(
                has_next_page=more,
                has_previous_page=after is not None,
                start_cursor=items[0][0] if items else None,
                end_cursor=items[-1][0] if items else None,
            ),
        )


SlotConnection = Connection[Slot]
BookingConnection = Connection[Booking]


def checked_first(first: int) -> int:
    """How many items were asked for. Errors: BAD_USER_INPUT."""
    if not 1 <= first <= MAX_FIRST:
        raise RefusedError(Code.BAD_USER_INPUT, f"`first` is a number from 1 to {MAX_FIRST}.")
    return first


def cursor_of(position: Position) -> str:
    """The cursor that stands for a position."""
    milliseconds = (position.start - EPOCH) // timedelta(milliseconds=1)
    return urlsafe_b64encode(orjson.dumps([milliseconds, position.id])).decode()


def position_of(cursor: str | None) -> Position | None:
    """The position that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    try:
        milliseconds, item_id = orjson.loads(urlsafe_b64decode(cursor.encode("ascii")))
        if re.fullmatch("[0-9a-f]{24}", item_id):
            return Position(EPOCH + timedelta(milliseconds=milliseconds), item_id)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        pass
    raise RefusedError(Code.BAD_USER_INPUT, "This cursor is not one of ours.")


def name_cursor(name: str) -> str:
    """The cursor that stands for a name in a list by name."""
    return urlsafe_b64encode(orjson.dumps([name])).decode()


def name_of(cursor: str | None) -> str | None:
    """The name that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    try:
        (name,) = orjson.loads(urlsafe_b64decode(cursor.encode("ascii")))
        if isinstance(name, str) and name and not line_problem(name, MAX_NAME):
            return name
    except (ValueError, TypeError, binascii.Error):
        pass
    raise RefusedError(Code.BAD_USER_INPUT, "This cursor is not one of ours.")
