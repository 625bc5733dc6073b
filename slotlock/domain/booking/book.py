"""Who gets a place: one person one slot, or several people and slots, all or none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import Booking, BookingId, EndedWaitlistEntry, SlotId
from slotlock.domain.booking.history import BookingAction, BookingStatus, HistoryEntry
from slotlock.domain.booking.limits import (
    LimitViolation,
    group_violations,
    time_violations,
    user_violations,
)
from slotlock.domain.booking.outcomes import AllBooked, Booked, NoneBooked
from slotlock.domain.booking.promotion import promotable_count, propagate_bookings
from slotlock.domain.booking.refusals import (
    AlreadyBooked,
    BookingRefusal,
    LimitReached,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    TimeConflict,
)
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import UserId

# A hold's hard maximum: no setting and no extension passes it. Ticket shops give 5 to 30 minutes.
MAX_HOLD_MINUTES = 60


@dataclass(frozen=True, slots=True)
class BookingRequest:
    """A person who is to have a place, who asks for it, and the id their booking will carry.

    `organised` when an organiser asks for somebody: time limits then do not hold, but are named.
    """

    user_id: UserId
    booking_id: BookingId
    requested_by: UserId
    hold: bool = False
    as_organizer: bool = False


@dataclass(frozen=True, slots=True)
class SlotClaim:
    """A place in one slot for one party."""

    slot_id: SlotId
    request: BookingRequest


def book(
    slot: Slot, request: BookingRequest, now: datetime
) -> tuple[Slot, Booked | BookingRefusal]:
    """Give the party a place, if there is one that they may have."""
    if written := slot.booking_by_id(request.booking_id):  # by a try whose answer was lost
        return slot, Booked(written, slot)
    refusal = _refusal(slot, request, now)
    if refusal is not None:
        return slot, refusal
    entry, groups = _created_entry(slot, request, now), slot.groups_of(request.user_id)
    booking = Booking(request.booking_id, slot.id, request.user_id, (entry,), groups=groups)
    after = slot.with_booking(booking)
    if waiting := slot.waitlist_entry_of(
        request.user_id
    ):  # an organiser seats them once the line is over
        after = after.without_waitlist_entry(waiting)
        after = replace(
            after,
            ended_waitlist_entries=(
                *after.ended_waitlist_entries,
                EndedWaitlistEntry(waiting, now, request.requested_by),
            ),
        )
    return after, Booked(booking, after)


def book_all(
    slots: Mapping[SlotId, Slot], claims: Sequence[SlotClaim], now: datetime
) -> tuple[dict[SlotId, Slot], AllBooked | NoneBooked]:
    """Give every claim its place, or none of them any."""
    after, answers = dict(slots), list[Booked | BookingRefusal]()
    for claim in claims:
        slot = after.get(claim.slot_id)
        if slot is None:
            answers.append(SlotNotFound(claim.slot_id))
            continue
        changed, answer = book(slot, claim.request, now)
        after[slot.id] = changed
        if isinstance(answer, Booked):
            given = (
                [slot.as_other_booking(answer.booking)] if slot.depends_on_other_bookings else []
            )
            after = propagate_bookings(after, slot.id, given)
        answers.append(answer)
    booked = tuple(answer for answer in answers if isinstance(answer, Booked))
    if len(booked) == len(answers):
        return after, AllBooked(booked)
    unwritten = {claim.request.booking_id for claim in claims}
    return dict(slots), NoneBooked(tuple(_public_refusal(answer, unwritten) for answer in answers))


def _public_refusal(
    outcome: Booked | BookingRefusal, discarded_ids: set[BookingId]
) -> BookingRefusal | None:
    match outcome:
        case Booked():
            return None
        case LimitReached() | TimeConflict() if (
            outcome.booking and outcome.booking.id in discarded_ids
        ):
            return replace(outcome, booking=None)
        case _:
            return outcome


def _refusal(slot: Slot, request: BookingRequest, now: datetime) -> BookingRefusal | None:
    if slot.status is SlotStatus.DRAFT:
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot)
    late = next(time_violations(slot, now), None)
    if late is not None and not request.as_organizer:
        return late[1]
    if booking := slot.booking_of(request.user_id):
        return AlreadyBooked(booking, slot)
    theirs = next(user_violations(slot, request.user_id, now), None)
    if theirs is not None and not request.as_organizer:
        return theirs[1]
    # Whoever still waits comes before everyone who walks in.
    if slot.remaining <= 0 or promotable_count(slot, now) > 0:
        return SlotFull(slot)
    full = next(group_violations(slot, request.user_id), None)
    return full[1] if full is not None and not request.as_organizer else None


def _violations(slot: Slot, user_id: UserId, now: datetime) -> Iterator[LimitViolation]:
    yield from time_violations(slot, now)
    yield from user_violations(slot, user_id, now)
    yield from group_violations(slot, user_id)


def _created_entry(slot: Slot, request: BookingRequest, now: datetime) -> HistoryEntry:
    overridden_limits = tuple(limit for limit, _ in _violations(slot, request.user_id, now))
    if not request.hold:
        return HistoryEntry(
            now,
            request.requested_by,
            BookingAction.BOOKED,
            BookingStatus.CONFIRMED,
            overridden_limits=overridden_limits,
        )
    return HistoryEntry(
        now,
        request.requested_by,
        BookingAction.HELD,
        BookingStatus.HELD,
        hold_end(slot, now),
        overridden_limits,
    )


def hold_end(slot: Slot, now: datetime) -> datetime:
    """When a hold that begins now runs out: never after the slot begins."""
    until = now + timedelta(minutes=slot.hold_minutes)
    return min(until, slot.start) if now < slot.start else until
