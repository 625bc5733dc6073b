"""The mutation that books the slots of a series."""

from collections.abc import Sequence
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes, refusals
from slotlock.graphql.booking.book import (
    USER_ID_DESCRIPTION,
    ClaimRefusal,
    ClaimsRefused,
    parse_booked_user_id,
)
from slotlock.graphql.booking.refusals.present import present_booking_refusal
from slotlock.graphql.booking.refusals.series import (
    NothingToBook,
    SeriesTooLong,
    present_series_refusal,
)
from slotlock.graphql.booking.results import Booked
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    WAIT_DESCRIPTION,
    require_valid_key,
    to_wait_seconds,
)
from slotlock.graphql.core.enums import SeriesMode
from slotlock.graphql.core.refusals import KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.slots.refusals import Locked, SeriesNotFound
from slotlock.graphql.slots.types import Booking
from slotlock.graphql.users.refusals import OnBehalfRefusal, UserNotFound
from slotlock.services.booking import book_series
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.book_series import SeriesRequest


@strawberry.input(description="The series to book.")
class BookSeriesInput:
    series_id: strawberry.ID = field(
        description="The series. Its slots that have started, were cancelled or are drafts are "
        "left out."
    )
    mode: SeriesMode = field(
        default=SeriesMode.ALL_OR_NONE,
        description="Whether to book all slots or none, or those that can be booked.",
    )
    wait_ms: int = field(default=0, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)
    user_id: strawberry.ID | None = field(default=None, description=USER_ID_DESCRIPTION)
    hold: bool = field(
        default=False,
        description="Whether to hold the places until `heldUntil` instead of booking them. "
        "`confirmBooking` then books each.",
    )


@strawberry.type(description="At least one slot of the series was booked or held.")
class SeriesBooked:
    series_id: strawberry.ID = field(description="The id of the series.")
    bookings: list[Booking] = field(description="The new bookings by the start of their slots.")
    refusals: list[ClaimRefusal] = field(
        description="The slots that were not booked and why, by start. Empty with `ALL_OR_NONE`."
    )

    @classmethod
    def from_domain(cls, series_id: str, outcome: outcomes.SeriesBooked, view: ResultView) -> Self:
        """Show the bookings and the refused slots."""
        return cls(
            series_id=strawberry.ID(series_id),
            bookings=[
                Booked.from_domain(each, view).booking
                for each in outcome.outcomes
                if isinstance(each, outcomes.Booked)
            ],
            refusals=_claim_refusals(outcome.outcomes, view),
        )


def _claim_refusals(results: Sequence[object], view: ResultView) -> list[ClaimRefusal]:
    return [
        ClaimRefusal.from_domain(index, each, view)
        for index, each in enumerate(results)
        if isinstance(each, refusals.BookingRefusal)
    ]


BookSeriesResult = Annotated[
    SeriesBooked
    | ClaimsRefused
    | SeriesNotFound
    | NothingToBook
    | SeriesTooLong
    | OnBehalfRefusal
    | Locked
    | KeyReused,
    strawberry.union("BookSeriesResult", description="The new bookings, or a refusal."),
]

BookSeriesArgument = Annotated[BookSeriesInput, argument(description="The series to book.")]


@strawberry.type
class SeriesBookingMutations:
    @field(
        description="Book or hold a place in every slot of a series that has not started, at most "
        "100: in all of them or none, or in those that can be booked.",
        graphql_type=BookSeriesResult,
    )
    async def book_series(
        self,
        info: Info,
        input: BookSeriesArgument,  # noqa: A002
    ) -> SeriesBooked | Refusal:
        context = info.context
        caller = context.caller
        options = BookingOptions(
            input.hold, to_wait_seconds(input.wait_ms), require_valid_key(input.idempotency_key)
        )
        series_id = ids.parse_series_id(input.series_id)
        if series_id is None:
            return SeriesNotFound.for_id(input.series_id)
        user_id = parse_booked_user_id(input.user_id, caller)
        if user_id is None:
            return UserNotFound.for_id(input.user_id or "")

        async def charge(slot_count: int) -> None:
            # The mutation itself was charged before it began.
            if slot_count > 1:
                await context.charge(OperationKind.WRITE, slot_count - 1)

        request = SeriesRequest(series_id, user_id, input.mode)
        result = await book_series.book_series(context.services, caller, request, options, charge)
        outcome, view = result.outcome, ResultView(caller, result.slots, user_id)
        match outcome:
            case outcomes.SeriesBooked():
                return SeriesBooked.from_domain(input.series_id, outcome, view)
            case outcomes.NoneBooked():
                return ClaimsRefused.create(_claim_refusals(outcome.refusals, view))
            case refusals.SeriesNotFound() | refusals.NothingToBook() | refusals.SeriesTooLong():
                return present_series_refusal(outcome)
            case _:
                return present_booking_refusal(outcome, view)
