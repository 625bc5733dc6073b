"""The limits on bookings, apart from the number of places.

The first violated limit refuses a member. An organizer who acts for another user overrides all
limits, and the history names each of them.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import Booking, BookingLimit
from slotlock.domain.booking.booking_refusals import (
    Closed,
    EmailNotVerified,
    GroupFull,
    LimitReached,
    LimitRefusal,
    NotEligible,
    NotYetOpen,
    OtherBookingRefusal,
    SlotStarted,
    TimeConflict,
    TooManyNoShows,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import OtherBooking, UserContexts
from slotlock.domain.campaigns.terms import CampaignState
from slotlock.domain.schedule.meetings import first_overlap
from slotlock.domain.users.user import UserId

MAX_BOOKINGS_PER_CHOICE_GROUP = 1

LimitViolation = tuple[BookingLimit, LimitRefusal]


def time_violations(slot: Slot, now: datetime) -> Iterator[LimitViolation]:
    """Yield the violated limits of time: the slot has started, or its campaign is not open."""
    if now >= slot.start:
        yield BookingLimit.SLOT_STARTED, SlotStarted(slot.id)
    terms = slot.terms
    if terms is None:
        return
    state = terms.state_at(now)
    if not terms.published or state is CampaignState.CLOSED:
        yield BookingLimit.CLOSED, Closed(slot.id, terms.closes_at)
    elif state is CampaignState.UPCOMING:
        yield BookingLimit.NOT_YET_OPEN, NotYetOpen(slot.id, terms.opens_at)


def user_violations(
    slot: Slot, users: UserContexts, user_id: UserId, now: datetime
) -> Iterator[LimitViolation]:
    """Yield the violated limits that depend on the user: groups, address, other bookings."""
    terms = slot.terms
    is_out = terms is not None and not terms.is_eligible(users.groups_for(slot, user_id))
    if is_out or (slot.only_for_groups and not slot.is_for(users.groups_for(slot, user_id))):
        yield BookingLimit.NOT_ELIGIBLE, NotEligible(slot.id)
    if (
        users.require_verified_email or (terms is not None and terms.require_verified_email)
    ) and users.lacks_verification(user_id):
        yield BookingLimit.EMAIL_NOT_VERIFIED, EmailNotVerified(slot.id)
    other_bookings = users.other_bookings_for(slot, user_id, now)
    if not other_bookings:
        return
    if no_shows := _no_shows_refusal(slot, other_bookings, now):
        yield BookingLimit.NO_SHOWS, no_shows
    yield from other_booking_violations(slot, other_bookings)


def _no_shows_refusal(
    slot: Slot, other_bookings: Iterable[OtherBooking], now: datetime
) -> TooManyNoShows | None:
    """Return why the no-shows of the user in the campaign rule out a booking now, if they do."""
    terms = slot.terms
    if terms is None or terms.no_show_limit is None:
        return None
    marked_at = [
        other.booking.no_show.at
        for other in other_bookings
        if other.slot.terms is not None
        and other.slot.terms.campaign_id == terms.campaign_id
        and other.booking.no_show is not None
    ]
    if len(marked_at) < terms.no_show_limit.count:
        return None
    until = max(marked_at) + timedelta(days=terms.no_show_limit.days)
    return TooManyNoShows(slot.id, len(marked_at), until) if now < until else None


def other_booking_violations(
    slot: Slot, other_bookings: Iterable[OtherBooking]
) -> Iterator[tuple[BookingLimit, OtherBookingRefusal]]:
    """Yield the limits that other bookings of the same user violate."""
    other_bookings = tuple(other_bookings)
    for other in other_bookings:
        if slot.choice_group is not None and other.slot.choice_group == slot.choice_group:
            yield (
                BookingLimit.ONE_OF_CHOICE,
                LimitReached(slot.id, MAX_BOOKINGS_PER_CHOICE_GROUP, other.booking),
            )
            break
    terms = slot.terms
    if terms is None:
        return
    in_campaign = sum(
        other.slot.terms is not None and other.slot.terms.campaign_id == terms.campaign_id
        for other in other_bookings
    )
    if terms.max_bookings is not None and in_campaign >= terms.max_bookings:
        yield BookingLimit.MAX_BOOKINGS, LimitReached(slot.id, terms.max_bookings, None)
    if conflict := _time_conflict(slot, other_bookings) if terms.forbid_overlap else None:
        yield BookingLimit.TIME_CONFLICT, conflict


def _time_conflict(slot: Slot, other_bookings: Iterable[OtherBooking]) -> TimeConflict | None:
    for other in other_bookings:
        if other.slot.terms is None or not other.slot.terms.forbid_overlap:
            continue
        if overlap := first_overlap(slot.all_meetings, other.slot.all_meetings):
            return TimeConflict(slot.id, other.booking, *overlap)
    return None


def group_violations(
    state: SlotState, users: UserContexts, user_id: UserId
) -> Iterator[LimitViolation]:
    """Yield the limit of the user's groups that is reached, if there is one."""
    groups = users.groups_for(state.slot, user_id)
    if full := state.exceeded_group_limit(groups):
        yield BookingLimit.GROUP_FULL, GroupFull(state.id, full.group, full.limit)


def conflicting_booking_refusal(
    slot: Slot, users: UserContexts, booking: Booking, now: datetime
) -> OtherBookingRefusal | None:
    """Return why another booking of the user rules out this hold; None if none does.

    Bookings that an organizer made although they were ruled out do not count.
    """
    if booking.was_forced:
        return None
    others = users.other_bookings_for(slot, booking.user_id, now)
    unforced = (other for other in others if not other.booking.was_forced)
    return next((refusal for _, refusal in other_booking_violations(slot, unforced)), None)
