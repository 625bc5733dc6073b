"""Rules for confirming, extending, cancelling and moving a booking."""

from dataclasses import replace
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingLimit,
    BookingRef,
    BookingStatus,
    HistoryEntry,
)
from slotlock.domain.booking.booking_outcomes import (
    Booked,
    BookingCancelled,
    BookingConfirmed,
    BookingMoved,
    CancelOutcome,
    ConfirmOutcome,
    ExtendOutcome,
    HoldExtended,
    MoveOutcome,
)
from slotlock.domain.booking.booking_refusals import (
    BookingNotFound,
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    NotHeld,
    SlotCancelled,
    SlotStarted,
)
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    Decision,
    accept,
    booking_rule,
    refuse,
)
from slotlock.domain.booking.rules.book import BookingRequest, book, hold_end
from slotlock.domain.booking.rules.limits import (
    conflicting_booking_refusal,
    other_booking_violations,
)
from slotlock.domain.booking.slot import MAX_HOLD_MINUTES, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts

# A shorter extension is accepted without a change, so that the history stays short.
MIN_EXTENSION = timedelta(seconds=30)

MissingBooking = BookingNotFound | HoldExpired
TooLateToCancel = SlotStarted | CutoffPassed


def expired_refusal(booking: Booking) -> HoldExpired | None:
    """Return the refusal for an ended booking, if it was a hold that expired."""
    expired = booking.status is BookingStatus.EXPIRED
    return HoldExpired(booking.slot_id, booking) if expired else None


def _cancelled_again(booking: Booking) -> HoldExpired | BookingCancelled | None:
    """Return the outcome for an ended booking: cancelling it succeeds again.

    One that was moved is not found: its user has the place in the other slot still.
    """
    if booking.moved_to is not None:
        return None
    return expired_refusal(booking) or BookingCancelled(booking.slot_id, booking)


@booking_rule("confirm", if_ended=expired_refusal)
def confirm(
    state: SlotState, users: UserContexts, request: BookingChangeRequest, now: datetime
) -> Decision[ConfirmOutcome]:
    """Turn a hold into a confirmed booking.

    A hold may last beyond the start of its slot: an organizer may have moved the start, or have
    created the hold late.
    """
    booking = _find(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if state.slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(state.id))
    if booking.status is BookingStatus.CONFIRMED:
        return accept(BookingConfirmed(state.id, booking))
    # Where clocks differ, the user may have booked another slot because this hold seemed expired.
    conflict = conflicting_booking_refusal(state.slot, users, booking, now)
    if conflict is not None and not request.caller.is_organizer:
        return refuse(conflict)
    others = users.other_bookings_for(state.slot, booking.user_id, now)
    overridden_limits = tuple(limit for limit, _ in other_booking_violations(state.slot, others))
    confirmed = booking.with_entry(
        HistoryEntry(
            now,
            request.caller.user_id,
            BookingAction.CONFIRMED,
            BookingStatus.CONFIRMED,
            overridden_limits=overridden_limits,
        )
    )
    return accept(BookingConfirmed(state.id, confirmed), state.with_changed_booking(confirmed))


@booking_rule("extend", if_ended=expired_refusal)
def extend(
    state: SlotState, users: UserContexts, request: BookingChangeRequest, now: datetime
) -> Decision[ExtendOutcome]:
    """Extend a hold to the lifetime of one that starts now, within the maximum lifetime.

    Offers from the waiting list are not extended, because other users wait for them. Moved holds
    are not extended either, because every move would restart the maximum lifetime.
    """
    booking = _find(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if state.slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(state.id))
    if booking.status is BookingStatus.CONFIRMED or booking.held_until is None:
        return refuse(NotHeld(state.id, booking))
    latest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
    until = min(hold_end(state.slot, now), latest)
    has_conflict = conflicting_booking_refusal(state.slot, users, booking, now) is not None
    is_fixed = booking.made_by is None or booking.moved_from is not None or has_conflict
    if until <= booking.held_until or is_fixed:
        return refuse(HoldLimitReached(state.id, booking))
    if until - booking.held_until < MIN_EXTENSION:
        return accept(HoldExtended(state.id, booking))
    extended = booking.with_entry(
        HistoryEntry(now, request.caller.user_id, BookingAction.EXTENDED, BookingStatus.HELD, until)
    )
    return accept(HoldExtended(state.id, extended), state.with_changed_booking(extended))


@booking_rule("cancel", if_ended=_cancelled_again)
def cancel(
    state: SlotState, _users: UserContexts, request: BookingChangeRequest, now: datetime
) -> Decision[CancelOutcome]:
    """Cancel a booking: its user and its booker until the cutoff, an organizer at any time."""
    booking = _find(state, request)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if state.slot.status is SlotStatus.CANCELLED:  # which cancelled its bookings too
        return accept(BookingCancelled(state.id, booking))
    too_late = _cancel_deadline_refusal(state.slot, booking, now)
    if too_late is not None and not request.caller.is_organizer:
        return refuse(too_late)
    cancelled = _cancelled(booking, request, BookingAction.CANCELLED, now, too_late)
    return accept(BookingCancelled(state.id, cancelled), state.without_bookings(cancelled))


def move(
    old: SlotState,
    new: SlotState,
    users: UserContexts,
    change: BookingChangeRequest,
    request: BookingRequest,
    now: datetime,
) -> Decision[MoveOutcome]:
    """Exchange a booking in one slot for a booking in the other, both changes or neither.

    A hold stays a hold, and the move does not extend it. In its own slot, a booking is in the way.
    """
    booking = _find(old, change)
    if not isinstance(booking, Booking):
        return refuse(booking)
    if old.slot.status is SlotStatus.CANCELLED:
        return refuse(SlotCancelled(old.id))
    too_late = _cancel_deadline_refusal(old.slot, booking, now)
    if too_late is not None and not change.caller.is_organizer:
        return refuse(too_late)
    if booking.status is BookingStatus.HELD:
        request = replace(request, hold=True)
    decision = book(new, users.without_booking(booking), request, now)
    if not isinstance(decision.outcome, Booked):
        return refuse(decision.outcome)
    moved = _moved(decision.outcome.booking, booking, new.slot, request, now)
    ended = _cancelled(booking, change, BookingAction.MOVED, now, too_late)
    ended = replace(ended, moved_to=BookingRef(new.id, moved.id))
    (taken,) = decision.changed_slots or (new,)
    new_after = taken.with_changed_booking(moved)
    return accept(BookingMoved(new.id, moved, ended), old.without_bookings(ended), new_after)


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
        made_as=booked.made_as,
    )


def _find(state: SlotState, request: BookingChangeRequest) -> Booking | MissingBooking:
    booking = state.booking_by_id(request.booking_id)
    if booking is not None and booking.is_managed_by(request.caller):
        return booking
    # The hold may have expired in the same decision, just before this request.
    ended = next((b for b in state.change.ended if b.id == request.booking_id), None)
    if ended and ended.status is BookingStatus.EXPIRED and ended.is_managed_by(request.caller):
        return HoldExpired(state.id, ended)
    return BookingNotFound(state.id, request.booking_id)


def _cancel_deadline_refusal(slot: Slot, booking: Booking, now: datetime) -> TooLateToCancel | None:
    # A hold can be given up as long as it lasts.
    if booking.status is BookingStatus.HELD:
        return None
    if now >= slot.start:
        return SlotStarted(slot.id)
    return CutoffPassed(slot.id, slot.cancel_cutoff) if now >= slot.cancel_cutoff else None


def _cancelled(
    booking: Booking,
    request: BookingChangeRequest,
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
            request.caller.user_id,
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
