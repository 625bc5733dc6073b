"""What stands in the way of a person who wants a place, besides that none is left.

Members are refused for the first reason. Organisers who act for somebody pass over all of them,
and each is named in the record.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from slotlock.domain.booking.booking import Booking, OtherBooking
from slotlock.domain.booking.history import BookingLimit
from slotlock.domain.booking.refusals import (
    Closed,
    GroupFull,
    LimitReached,
    LimitRefusal,
    NotEligible,
    NotYetOpen,
    OtherBookingRefusal,
    SlotStarted,
    TimeConflict,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.terms import CampaignState
from slotlock.domain.schedule.meetings import first_overlap
from slotlock.domain.users.user import UserId

MAX_BOOKINGS_PER_CHOICE_GROUP = 1

LimitViolation = tuple[BookingLimit, LimitRefusal]


def time_violations(slot: Slot, now: datetime) -> Iterator[LimitViolation]:
    """Whether places are given at all at this instant."""
    if now >= slot.start:
        yield BookingLimit.SLOT_STARTED, SlotStarted(slot)
    terms = slot.terms
    if terms is None:
        return
    if not terms.published or terms.state_at(now) is CampaignState.CLOSED:
        yield BookingLimit.CLOSED, Closed(terms.closes_at, slot, terms.published)
    elif terms.state_at(now) is CampaignState.UPCOMING:
        yield BookingLimit.NOT_YET_OPEN, NotYetOpen(terms.opens_at, slot)


def user_violations(slot: Slot, user_id: UserId, now: datetime) -> Iterator[LimitViolation]:
    """Whether this person may have a place here, whatever is left."""
    if slot.terms is not None and not slot.terms.is_eligible(slot.groups_of(user_id)):
        yield BookingLimit.NOT_ELIGIBLE, NotEligible(slot)
    yield from other_booking_violations(slot, slot.other_bookings_of(user_id, now))


def other_booking_violations(
    slot: Slot, other_bookings: Iterable[OtherBooking]
) -> Iterator[tuple[BookingLimit, OtherBookingRefusal]]:
    """Whether somebody's other places rule out one here."""
    other_bookings = tuple(other_bookings)
    for place in other_bookings:
        if slot.choice_group is not None and place.choice_group == slot.choice_group:
            yield (
                BookingLimit.ONE_OF_CHOICE,
                LimitReached(MAX_BOOKINGS_PER_CHOICE_GROUP, place.booking, slot),
            )
            break
    terms = slot.terms
    if terms is None:
        return
    in_campaign = sum(
        place.terms is not None and place.terms.campaign_id == terms.campaign_id
        for place in other_bookings
    )
    if terms.max_bookings is not None and in_campaign >= terms.max_bookings:
        yield BookingLimit.MAX_BOOKINGS, LimitReached(terms.max_bookings, None, slot)
    if conflict := _time_conflict(slot, other_bookings) if terms.forbid_overlap else None:
        yield BookingLimit.TIME_CONFLICT, conflict


def _time_conflict(slot: Slot, other_bookings: Iterable[OtherBooking]) -> TimeConflict | None:
    for place in other_bookings:
        if place.terms is None or not place.terms.forbid_overlap:
            continue
        if overlap := first_overlap(slot.all_meetings, place.meetings):
            return TimeConflict(place.booking, *overlap, slot)
    return None


def group_violations(slot: Slot, user_id: UserId) -> Iterator[LimitViolation]:
    """Whether as many of this person's groups have places here as may."""
    if full := slot.exceeded_group_limit(slot.groups_of(user_id)):
        yield BookingLimit.GROUP_FULL, GroupFull(full.group, full.limit, slot)


def conflicting_booking_refusal(
    slot: Slot, booking: Booking, now: datetime
) -> OtherBookingRefusal | None:
    """What its person chose instead of a hold of theirs, where that rules the hold out.

    What an organiser gave them although it was ruled out stands against nothing.
    """
    if booking.was_forced:
        return None
    places = (p for p in slot.other_bookings_of(booking.user_id, now) if not p.booking.was_forced)
    return next((refusal for _, refusal in other_booking_violations(slot, places)), None)
