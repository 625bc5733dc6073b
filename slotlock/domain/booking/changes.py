"""What becomes of a booking: confirmed, extended, cancelled, moved."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slotlock.domain.booking.book import MAX_HOLD_MINUTES, BookingRequest, book, hold_end
from slotlock.domain.booking.booking import Booking, BookingId, BookingRef
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

# Less is granted as it is: a record does not grow by an entry for every moment.
MIN_EXTENSION = timedelta(seconds=30)

MissingBooking = BookingNotFound | HoldExpired
TooLateToCancel = SlotStarted | CutoffPassed


@dataclass(frozen=True, slots=True)
class BookingCommand:
    """Who wants something done with which booking."""

    booking_id: BookingId
    caller: Caller

    def may_change(self, booking: Booking) -> bool:
        """Whether it is theirs, or they organise."""
        return self.caller.is_organizer or booking.user_id == self.caller.user_id


def confirm(
    slot: Slot, command: BookingCommand, now: datetime
) -> tuple[Slot, BookingConfirmed | MissingBooking | OtherBookingRefusal | SlotCancelled]:
    """Make a hold a booking for good: its owner while it lasts, organisers for them.

    It may last beyond the start, if that was brought forward or an organiser gave it late.
    """
    booking = _find(slot, command)
    if not isinstance(booking, Booking):
        return slot, booking
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    if booking.status is BookingStatus.CONFIRMED:
        return slot, BookingConfirmed(booking, slot)
    organised = command.caller.is_organizer
    # Where clocks differ, they may have chosen another because this hold seemed to be over.
    if (rival := conflicting_booking_refusal(slot, booking, now)) and not organised:
        return slot, rival
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
    return after, BookingConfirmed(confirmed, after)


def extend(
    slot: Slot, command: BookingCommand, now: datetime
) -> tuple[Slot, HoldExtended | HoldLimitReached | NotHeld | MissingBooking | SlotCancelled]:
    """Let a hold last as long as one that begins now, but never past the hard maximum.

    What would be less than half a minute longer stays as it is.

    An offer from the waiting list is not extended: others wait for it. Nor is a hold that was
    moved: it would begin its hour anew with every move.
    """
    booking = _find(slot, command)
    if not isinstance(booking, Booking):
        return slot, booking
    if slot.status is SlotStatus.CANCELLED:
        return slot, SlotCancelled(slot)
    if booking.status is BookingStatus.CONFIRMED or booking.held_until is None:
        return slot, NotHeld(booking, slot)
    longest = booking.created_at + timedelta(minutes=MAX_HOLD_MINUTES)
    until = min(hold_end(slot, now), longest)
    chosen = conflicting_booking_refusal(slot, booking, now) is not None
    fixed = booking.made_by is None or booking.moved_from is not None or chosen
    if until <= booking.held_until or fixed:
        return slot, HoldLimitReached(booking, slot)
    if until - booking.held_until < MIN_EXTENSION:
        return slot, HoldExtended(booking, slot)
    extended = booking.with_entry(
        HistoryEntry(now, command.caller.user_id, BookingAction.EXTENDED, BookingStatus.HELD, until)
    )
    after = slot.with_changed_booking(extended)
    return after, HoldExtended(extended, after)


def cancel(
    slot: Slot, command: BookingCommand, now: datetime
) -> tuple[Slot, BookingCancelled | MissingBooking | TooLateToCancel]:
    """Give a place back: its owner until the cut-off, organisers at any time."""
    booking = _find(slot, command)
    if not isinstance(booking, Booking):
        return slot, booking
    if slot.status is SlotStatus.CANCELLED:
        return slot, BookingCancelled(booking, slot)  # with its slot, by whoever called that off
    late = _cancel_deadline_refusal(slot, booking, now)
    if late is not None and not command.caller.is_organizer:
        return slot, late
    cancelled = _cancelled(booking, command, BookingAction.CANCELLED, now, late)
    after = slot.without_bookings(cancelled)
    return after, BookingCancelled(cancelled, after)


def move(
    old_slot: Slot, new_slot: Slot, command: BookingCommand, request: BookingRequest, now: datetime
) -> tuple[Slot, Slot, BookingMoved | BookingRefusal | MissingBooking | CutoffPassed]:
    """Give a place in one slot back and take one in the other, both or neither.

    A hold stays a hold and lasts no longer for it.
    """
    booking = _find(old_slot, command)
    if not isinstance(booking, Booking):
        return old_slot, new_slot, booking
    if old_slot.status is SlotStatus.CANCELLED:
        return old_slot, new_slot, SlotCancelled(old_slot)
    if old_slot.id == new_slot.id:
        return old_slot, old_slot, AlreadyBooked(booking, old_slot)
    late = _cancel_deadline_refusal(old_slot, booking, now)
    if late is not None and not command.caller.is_organizer:
        return old_slot, new_slot, late
    taken, answer = book(_without_booking(new_slot, booking), request, now)
    if not isinstance(answer, Booked):
        return old_slot, new_slot, answer
    first = answer.booking.history[0]
    moved = Booking(
        request.booking_id,
        new_slot.id,
        booking.user_id,
        (
            HistoryEntry(
                now,
                request.requested_by,
                BookingAction.MOVED,
                booking.status,
                _hold_end_after_move(booking, new_slot, now),
                first.overridden_limits,
            ),
        ),
        moved_from=BookingRef(old_slot.id, booking.id),
        groups=answer.booking.groups,
    )
    ended = _cancelled(booking, command, BookingAction.MOVED, now, late)
    left = old_slot.without_bookings(replace(ended, moved_to=BookingRef(new_slot.id, moved.id)))
    taken = taken.with_changed_booking(moved)
    return left, taken, BookingMoved(moved, taken, left.ended_bookings[-1], left)


def _find(slot: Slot, command: BookingCommand) -> Booking | MissingBooking:
    booking = slot.booking_by_id(command.booking_id)
    if booking is not None and command.may_change(booking):
        return booking
    # It may have run out a moment ago, in the settling that came before this.
    ended = next((b for b in slot.ended_bookings if b.id == command.booking_id), None)
    if ended and ended.status is BookingStatus.EXPIRED and command.may_change(ended):
        return HoldExpired(ended, slot)
    return BookingNotFound(slot.id, command.booking_id)


def _cancel_deadline_refusal(slot: Slot, booking: Booking, now: datetime) -> TooLateToCancel | None:
    # A hold was never a promise, so that it can be given up while it lasts.
    if booking.status is BookingStatus.HELD:
        return None
    if now >= slot.start:
        return SlotStarted(slot)
    return CutoffPassed(slot.cancel_cutoff, slot) if now >= slot.cancel_cutoff else None


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
    # An offer may last for days where it was made; anywhere else it is a hold like others.
    until = min(booking.held_until, now + timedelta(minutes=MAX_HOLD_MINUTES))
    return until if now >= new_slot.start else min(until, new_slot.start)


def _without_booking(new_slot: Slot, booking: Booking) -> Slot:
    # The place that is given back does not stand against the one that is taken.
    known = new_slot.user_context(booking.user_id)
    if known is None:
        return new_slot
    others = tuple(place for place in known.other_bookings if place.booking.id != booking.id)
    return replace(
        new_slot,
        user_contexts={
            **new_slot.user_contexts,
            known.user_id: replace(known, other_bookings=others),
        },
    )
