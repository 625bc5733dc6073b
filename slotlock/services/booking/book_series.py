"""Booking the slots of a series: all of them or none, or those that are free."""

from collections.abc import Awaitable, Callable

from slotlock.domain.booking.booking_outcomes import BookSeriesOutcome
from slotlock.domain.booking.booking_refusals import SeriesNotFound, SeriesRefusal
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.rules.book import SeriesMode, SlotClaim, slots_to_book
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.request_deadline import WaitDeadline
from slotlock.services.booking.book import (
    BookingOptions,
    BookSeriesCommand,
    booking_request,
    execute_if_permitted,
)
from slotlock.services.booking.booking_changes import BOOKING_ACTIONS_TOTAL
from slotlock.services.booking.permissions import with_reader
from slotlock.services.commands.idempotency import execute_once
from slotlock.services.container import Services

Charge = Callable[[int], Awaitable[None]]


@value_object
class SeriesRequest:
    """Which series to book, for whom, and which of its slots."""

    series_id: SeriesId
    user_id: UserId
    mode: SeriesMode


async def book_series(
    services: Services,
    caller: Caller,
    request: SeriesRequest,
    options: BookingOptions,
    charge: Charge,
) -> CommandResult[BookSeriesOutcome]:
    """Book or hold a place in the slots of a series that have not started.

    `charge` is called with the number of slots before they are booked, and may raise an error.
    """
    result = await _execute_once(services, caller, request, options, charge)
    result = await with_reader(services, caller, result, request.user_id)
    outcome = BookSeriesCommand.check_outcome(result.outcome)
    BOOKING_ACTIONS_TOTAL.labels(BookSeriesCommand.name, type(outcome).__name__).inc()
    return CommandResult(outcome, result.slots, result.caller)


async def _execute_once(
    services: Services,
    caller: Caller,
    request: SeriesRequest,
    options: BookingOptions,
    charge: Charge,
) -> CommandResult[object]:
    """Book the slots, unless the idempotency key has an outcome already."""
    deadline = WaitDeadline.after(options.wait_s)
    parts = (request.series_id, request.user_id, request.mode)
    key = options.to_idempotency_key(caller, BookSeriesCommand.name, *parts)
    found = await services.slots.find_by_series(request.series_id, services.now())
    if not found:
        return CommandResult(SeriesNotFound(request.series_id))

    async def book() -> CommandResult[object]:
        slots = [state.slot for state in found]
        slot_ids = slots_to_book(request.series_id, slots, caller, services.now())
        if isinstance(slot_ids, SeriesRefusal):
            return CommandResult(slot_ids)
        await charge(len(slot_ids))
        claims = tuple(
            SlotClaim(slot_id, booking_request(caller, request.user_id, options.hold))
            for slot_id in slot_ids
        )
        command = BookSeriesCommand(caller, request.user_id, claims, request.mode, key)
        return await execute_if_permitted(services, command, deadline)

    return await execute_once(services, key, found[0].id, deadline, book)
