"""Builders of campaign terms, slots of a campaign and users with groups."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import (
    NO_CONTEXTS,
    OtherBooking,
    UserContext,
    UserContexts,
)
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import HOUR, NOW, booking_request, build_slot
from tests.support.domain.decisions import decide

OPENS_AT, CLOSES_AT = NOW - HOUR, NOW + HOUR


def build_terms(**fields: object) -> CampaignTerms:
    """Return the terms of a published campaign that is open at `NOW`."""
    terms = CampaignTerms(
        CampaignId("c"), 1, published=True, opens_at=OPENS_AT, closes_at=CLOSES_AT
    )
    return replace(terms, **fields)  # type: ignore[arg-type]


def build_campaign_slot(capacity: int = 5, **terms: object) -> SlotState:
    """Return a slot of a campaign with these terms."""
    return build_slot(capacity, terms=build_terms(**terms))


def build_group_limited_slot(*limits: GroupLimit, **terms: object) -> SlotState:
    """Return a slot of a campaign, with group limits of its own."""
    return build_slot(10, terms=build_terms(**terms), group_limits=limits)


def contexts(*users: UserContext) -> UserContexts:
    """Return the contexts of these users."""
    return UserContexts({context.user_id: context for context in users})


def user_in_groups(name: str, *groups: str) -> UserContext:
    """Return the context of a user in these groups without other bookings."""
    return UserContext(UserId(name), groups)


def user_with_booking(name: str, state: SlotState, booking: Booking, *groups: str) -> UserContext:
    """Return the context of a user in these groups with a booking in this slot."""
    return UserContext(UserId(name), groups, 1, (OtherBooking(booking, state.slot),))


def refusal_of(
    state: SlotState, name: str, now: datetime = NOW, users: UserContexts = NO_CONTEXTS
) -> object:
    """Return the refusal of a booking by this user. The slot must not change."""
    after, outcome = decide(book, state, booking_request(name), now, users=users)
    assert after == state
    return outcome
