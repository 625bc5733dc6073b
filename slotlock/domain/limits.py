"""What stands in the way of a person who wants a place, besides that none is left.

Members are refused for the first reason. Organisers who act for somebody pass over all of them,
and each is named in the record.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from slotlock.domain.bookings import Booking, Place
from slotlock.domain.meetings import first_overlap
from slotlock.domain.people import UserId
from slotlock.domain.record import Limit
from slotlock.domain.refusals import (
    ChosenRefusal,
    Closed,
    GroupFull,
    LimitReached,
    LimitRefusal,
    NotEligible,
    NotYetOpen,
    SlotStarted,
    TimeConflict,
)
from slotlock.domain.slots import Slot
from slotlock.domain.terms import CampaignState

ONE_OF_A_CHOICE = 1

Breach = tuple[Limit, LimitRefusal]


def out_of_time(slot: Slot, now: datetime) -> Iterator[Breach]:
    """Whether places are given at all at this instant."""
    if now >= slot.start:
        yield Limit.SLOT_STARTED, SlotStarted(slot)
    terms = slot.terms
    if terms is None:
        return
    if not terms.published or terms.state(now) is CampaignState.CLOSED:
        yield Limit.CLOSED, Closed(terms.closes_at, slot, terms.published)
    elif terms.state(now) is CampaignState.UPCOMING:
        yield Limit.NOT_YET_OPEN, NotYetOpen(terms.opens_at, slot)


def not_for_them(slot: Slot, user_id: UserId, now: datetime) -> Iterator[Breach]:
    """Whether this person may have a place here, whatever is left."""
    if slot.terms is not None and not slot.terms.admits(slot.groups_of(user_id)):
        yield Limit.NOT_ELIGIBLE, NotEligible(slot)
    yield from chosen_otherwise(slot, slot.places_of(user_id, now))


def chosen_otherwise(slot: Slot, places: Iterable[Place]) -> Iterator[tuple[Limit, ChosenRefusal]]:
    """Whether somebody's other places rule out one here."""
    places = tuple(places)
    for place in places:
        if slot.choice is not None and place.choice == slot.choice:
            yield Limit.ONE_OF_CHOICE, LimitReached(ONE_OF_A_CHOICE, place.booking, slot)
            break
    terms = slot.terms
    if terms is None:
        return
    in_campaign = sum(
        place.terms is not None and place.terms.campaign_id == terms.campaign_id for place in places
    )
    if terms.most is not None and in_campaign >= terms.most:
        yield Limit.MOST_BOOKINGS, LimitReached(terms.most, None, slot)
    if conflict := _conflict(slot, places) if terms.forbid_overlap else None:
        yield Limit.TIME_CONFLICT, conflict


def _conflict(slot: Slot, places: Iterable[Place]) -> TimeConflict | None:
    for place in places:
        if place.terms is None or not place.terms.forbid_overlap:
            continue
        if overlap := first_overlap(slot.times, place.meetings):
            return TimeConflict(place.booking, *overlap, slot)
    return None


def group_is_full(slot: Slot, user_id: UserId) -> Iterator[Breach]:
    """Whether as many of this person's groups have places here as may."""
    if full := slot.full_group(slot.groups_of(user_id)):
        yield Limit.GROUP_FULL, GroupFull(full.group, full.limit, slot)


def rival_of(slot: Slot, booking: Booking, now: datetime) -> ChosenRefusal | None:
    """What its person chose instead of a hold of theirs, where that rules the hold out.

    What an organiser gave them although it was ruled out stands against nothing.
    """
    if booking.overrode_ever:
        return None
    places = (p for p in slot.places_of(booking.user_id, now) if not p.booking.overrode_ever)
    return next((refusal for _, refusal in chosen_otherwise(slot, places)), None)
