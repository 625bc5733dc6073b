"""Builders of campaign terms, slots of a campaign and users with groups."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.book import book
from slotlock.domain.booking.booking import Booking, UserContext
from slotlock.domain.booking.slot import Slot
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


def build_campaign_slot(capacity: int = 5, *users: UserContext, **terms: object) -> Slot:
    """Return a slot of a campaign with these terms, in which these users are known."""
    return build_slot(capacity, terms=build_terms(**terms), user_contexts=_by_user_id(users))


def build_group_limited_slot(
    *limits: GroupLimit, users: Iterable[UserContext], **terms: object
) -> Slot:
    """Return a slot with group limits of its own, in which these users are known."""
    slot = build_slot(10, terms=build_terms(**terms), user_contexts=_by_user_id(users))
    return replace(slot, group_limits=limits)


def _by_user_id(users: Iterable[UserContext]) -> dict[UserId, UserContext]:
    return {context.user_id: context for context in users}


def user_in_groups(name: str, *groups: str) -> UserContext:
    """Return the context of a user in these groups without other bookings."""
    return UserContext(UserId(name), groups)


def user_with_booking(name: str, slot: Slot, booking: Booking, *groups: str) -> UserContext:
    """Return the context of a user in these groups with a booking in another slot."""
    return UserContext(UserId(name), groups, 1, (slot.as_other_booking(booking),))


def refusal_of(slot: Slot, name: str, now: datetime = NOW) -> object:
    """Return the refusal of a booking by this user. The slot must not change."""
    after, outcome = decide(book, slot, booking_request(name), now)
    assert after == slot
    return outcome
