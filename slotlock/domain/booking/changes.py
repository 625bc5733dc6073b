"""Rules for confirming, extending, cancelling and moving a booking."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slotlock.domain.booking.book import MAX_HOLD_MINUTES, BookingRequest, book, hold_end
from slotlock.domain.booking.booking import Booking, BookingId, BookingRef
from slotlock.domain.booking.decision import Decision, accept, refuse
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus, HistoryEntry
from slotlock.domain.booking.limits import conflicting_booking_refusal, other_booking_violations
from slotlock.domain.booking.outcomes import (
    Booked,
    BookingCancelled,
    BookingConfirmed,
    BookingMoved,
    HoldExtended,
)
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    BookingNotFound,
    BookingRefusal,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    NotHeld,
    OtherBookingRefusal,
    SlotCancelled,
    SlotStarted,
)
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import Caller

# A shorter extension is accepted without a change, which keeps the history short.
MIN_EXTENSION = timedelta(seconds=30)

MissingBooking = BookingNotFound | HoldExpired
TooLateToCancel = SlotStarted | CutoffPassed
ConfirmResult = BookingConfirmed | MissingBooking | OtherBookingRefusal | SlotCancelled
ExtendResult = HoldExtended | HoldLimitReached | NotHeld | MissingBooking | SlotCancelled
CancelResult = BookingCancelled | MissingBooking | TooLateToCancel
MoveResult = BookingMoved | BookingRefusal | MissingBooking | CutoffPassed


@dataclass(frozen=True, slots=True)
class BookingCommand:
    """An existing booking and the user who wants to change it."""

    booking_id: BookingId
    caller: Caller

    def may_change(self, booking: Booking) -> bool:
        """Return whether the caller owns the booking or is an organizer."""
        return self.caller.is_organizer or booking.user_id == self.caller.user_id


def confirm(slot: Slot, command: BookingCommand, now: datetime) -> Decision[ConfirmResult]:
    """Turn a hold into a confirmed booking.

    A hold may last beyond the start of its slot: an organizer may have moved the start, or have
    created the hold late.
    """
    booking = _find(slot, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(slot))
    if booking.status is BookingStatus.CONFIRMED:
        return accept(BookingConfirmed(slot, booking))
    # Where clocks differ, the user may have booked another slot because this hold seemed expired.
    conflict = conflicting_booking_refusal(slot, booking, now)
    if conflict is not None and not command.caller.is_organizer:
        return refuse(conflict)
    places = slot.other_bookings_of(booking.user_id, now)
    overridden_limits = tuple(limit for limit, _ in other_booking_violations(slot, places))
    confirmed = booking.with_entry(
        HistoryEntry(
            now,
            command.caller.user_id,
            BookingAction.CONFIRMED,
            BookingStatus.CONFIRMED,
            overridden_limits=overridden_limits,
        )
    )
    after = slot.with_changed_booking(confirmed)
    return accept(BookingConfirmed(after, confirmed), after)


def extend(slot: Slot, command: BookingCommand, now: datetime) -> Decision[ExtendResult]:
    """Extend a hold to the lifetime of one that starts now, within the maximum lifetime.

    Offers from the waiting list are not extended, because other users wait for them. Moved holds
    are not extended either, because every move would restart the maximum lifetime.
    """
    booking = _find(slot, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(slot))
    if booking.status is BookingStatus.CONFIRMED or booking.held_until is None:
        return refuse(NotHeld(slot, booking))
    latest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
    until = min(hold_end(slot, now), latest)
    has_conflict = conflicting_booking_refusal(slot, booking, now) is not None
    is_fixed = booking.made_by is None or booking.moved_from is not None or has_conflict
    if until <= booking.held_until or is_fixed:
        return refuse(HoldLimitReached(slot, booking))
    if until - booking.held_until < MIN_EXTENSION:
        return accept(HoldExtended(slot, booking))
    extended = booking.with_entry(
        HistoryEntry(now, command.caller.user_id, BookingAction.EXTENDED, BookingStatus.HELD, until)
    )
    after = slot.with_changed_booking(extended)
    return accept(HoldExtended(after, extended), after)


def cancel(slot: Slot, command: BookingCommand, now: datetime) -> Decision[CancelResult]:
    """Cancel a booking: its owner until the cutoff, an organizer at any time."""
    booking = _find(slot, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if slot.status is SlotStatus.CANCELLED:  # which cancelled its bookings too
        return accept(BookingCancelled(slot, booking))
    too_late = _cancel_deadline_refusal(slot, booking, now)
    if too_late is not None and not command.caller.is_organizer:
        return refuse(too_late)
    cancelled = _cancelled(booking, command, BookingAction.CANCELLED, now, too_late)
    after = slot.without_bookings(cancelled)
    return accept(BookingCancelled(after, cancelled), after)


def move(
    old_slot: Slot, new_slot: Slot, command: BookingCommand, request: BookingRequest, now: datetime
) -> Decision[MoveResult]:
    """Exchange a booking in one slot for a booking in the other, both changes or neither.

    A hold stays a hold, and the move does not extend it.
    """
    booking = _find(old_slot, command)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if old_slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(old_slot))
    if old_slot.id == new_slot.id:
        return refuse(AlreadyBooked(old_slot, booking))
    too_late = _cancel_deadline_refusal(old_slot, booking, now)
    if too_late is not None and not command.caller.is_organizer:
        return refuse(too_late)
    decision = book(_without_booking(new_slot, booking), request, now)
    if not isinstance(decision.outcome, Booked):
        return refuse(decision.outcome)
    moved = _moved(decision.outcome.booking, booking, new_slot, request, now)
    ended = _cancelled(booking, command, BookingAction.MOVED, now, too_late)
    ended = replace(ended, moved_to=BookingRef(new_slot.id, moved.id))
    old_after = old_slot.without_bookings(ended)
    new_after = decision.outcome.slot.with_changed_booking(moved)
    return accept(BookingMoved(new_after, moved, ended, old_after), old_after, new_after)


def _moved(
    booked: Booking, old: Booking, new_slot: Slot, request: BookingRequest, now: datetime
) -> Booking:
    """Return the booking made in the new slot with the history of a move."""
    return Booking(
        request.booking_id,
        new_slot.id,
        old.user_id,
        (
            HistoryEntry(
                now,
                request.requested_by,
                BookingAction.MOVED,
                old.status,
                _hold_end_after_move(old, new_slot, now),
                booked.history[0].overridden_limits,
            ),
        ),
        moved_from=BookingRef(old.slot_id, old.id),
        groups=booked.groups,
    )


def _find(slot: Slot, command: BookingCommand) -> Booking | MissingBooking:
    booking = slot.booking_by_id(command.booking_id)
    if booking is not None and command.may_change(booking):
        return booking
    # The hold may have expired in the same decision, just before this request.
    ended = next((b for b in slot.change.ended if b.id == command.booking_id), None)
    if ended and ended.status is BookingStatus.EXPIRED and command.may_change(ended):
        return HoldExpired(slot, ended)
    return BookingNotFound(slot.id, command.booking_id)


def _cancel_deadline_refusal(slot: Slot, booking: Booking, now: datetime) -> TooLateToCancel | None:
    # A hold can be given up as long as it lasts.
    if booking.status is BookingStatus.HELD:
        return None
    if now >= slot.start:
        return SlotStarted(slot)
    return CutoffPassed(slot, slot.cancel_cutoff) if now >= slot.cancel_cutoff else None


def _cancelled(
    booking: Booking,
    command: BookingCommand,
    action: BookingAction,
    now: datetime,
    overridden: TooLateToCancel | None,
) -> Booking:
    overridden_limits: tuple[BookingLimit, ...] = ()
    if isinstance(overridden, SlotStarted):
        overridden_limits = (BookingLimit.SLOT_STARTED,)
    elif overridden is not None:
        overridden_limits = (BookingLimit.CANCEL_CUTOFF,)
    return booking.with_entry(
        HistoryEntry(
            now,
            command.caller.user_id,
            action,
            BookingStatus.CANCELLED,
            overridden_limits=overridden_limits,
        )
    )


def _hold_end_after_move(booking: Booking, new_slot: Slot, now: datetime) -> datetime | None:
    if booking.held_until is None:
        return None
    # An offer may last for days in its own slot; in another slot it is a hold like others.
    until = min(booking.held_until, now + timedelta(minutes=MAX_HOLD_MINUTES))
    return until if now >= new_slot.start else min(until, new_slot.start)


def _without_booking(new_slot: Slot, booking: Booking) -> Slot:
    """Return the new slot as if its user did not have the booking that moves."""
    context = new_slot.user_context(booking.user_id)
    if context is None:
        return new_slot
    others = tuple(each for each in context.other_bookings if each.booking.id != booking.id)
    contexts = {**new_slot.user_contexts, context.user_id: replace(context, other_bookings=others)}
    return replace(new_slot, user_contexts=contexts)
