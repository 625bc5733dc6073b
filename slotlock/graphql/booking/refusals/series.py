"""Refusals of booking a series: there is nothing that one request can book."""

from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.graphql.core.ids import series_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.slots.refusals import SeriesNotFound


@strawberry.type(description="Every slot of the series has started, was cancelled or is a draft.")
class NothingToBook(Refusal):
    series_id: strawberry.ID = field(description="The id of the series.")

    @classmethod
    def from_domain(cls, outcome: refusals.NothingToBook) -> Self:
        """Show that the series has no slot to book."""
        return cls(
            code=RefusalCode.NOTHING_TO_BOOK,
            message="This series has no slot that can be booked any more.",
            series_id=series_global_id(outcome.series_id),
        )


@strawberry.type(
    description="The series has more slots to book than one request may book. `bookSlots` can book "
    "a part of them."
)
class SeriesTooLong(Refusal):
    slot_count: int = field(description="How many slots of the series have not started.")
    limit: int = field(description="How many slots one request may book.")

    @classmethod
    def from_domain(cls, outcome: refusals.SeriesTooLong) -> Self:
        """Show how many slots there are, and how many there may be."""
        return cls(
            code=RefusalCode.SERIES_TOO_LONG,
            message=f"This series has {outcome.slot_count} slots to book. "
            f"At most {outcome.limit} can be booked at once.",
            slot_count=outcome.slot_count,
            limit=outcome.limit,
        )


def present_series_refusal(refusal: refusals.SeriesRefusal) -> Refusal:
    """Show why no slot of a series was booked."""
    match refusal:
        case refusals.SeriesNotFound(series_id=series_id):
            return SeriesNotFound.for_id(series_global_id(series_id))
        case refusals.NothingToBook():
            return NothingToBook.from_domain(refusal)
        case refusals.SeriesTooLong():
            return SeriesTooLong.from_domain(refusal)
        case _:
            assert_never(refusal)
