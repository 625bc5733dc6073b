"""The domain's enums, described for clients."""

from enum import Enum
from typing import TypeVar

import strawberry

from slotlock.domain.listing import SlotOrder
from slotlock.domain.people import Role
from slotlock.domain.slots import BookingStatus, SlotKind, SlotStatus

E = TypeVar("E", bound=Enum)


def _describe(enum: type[E], description: str, **values: str) -> None:
    # The domain's own enums, so that nothing is copied between two of them; a value that is not
    # described here is a KeyError at import.
    strawberry.enum(enum, description=description)
    for value in enum.__strawberry_definition__.values:  # type: ignore[attr-defined]
        value.description = values[value.name]


_describe(
    Role,
    "What a person may do.",
    MEMBER="Books places.",
    ORGANIZER="Also creates and keeps slots.",
    ADMIN="May do everything.",
)
_describe(
    SlotStatus,
    "Where a slot is in its life.",
    DRAFT="Seen by organisers only; cannot be booked.",
    PUBLISHED="Open to everyone.",
    CANCELLED="Called off; cannot be booked.",
)
_describe(
    SlotKind,
    "What a slot is for.",
    MEETING="A meeting.",
    COURSE="A course or a class.",
    OTHER="Something else.",
)
_describe(
    BookingStatus,
    "Whether a booking takes a place.",
    CONFIRMED="It takes a place.",
    CANCELLED="It gave its place back, or its slot was called off.",
)
_describe(
    SlotOrder,
    "The order of a list of slots; slots that start together are in the order of their ids.",
    START_ASC="The earliest first.",
    START_DESC="The latest first.",
)
