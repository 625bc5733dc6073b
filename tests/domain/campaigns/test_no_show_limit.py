"""The pause after too many no-shows: from which one on, until when, and at what cost."""

from datetime import timedelta

from slotlock.domain.booking.booking import BookingAction, BookingStatus, HistoryEntry, SlotId
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.refusals import TooManyNoShows
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.user_contexts import OtherBooking, UserContext, UserContexts
from slotlock.domain.campaigns.terms import CampaignId, NoShowLimit
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    INSTANT,
    NOW,
    book_place,
    booking_request,
    with_facts,
)
from tests.support.domain.campaign_builders import (
    build_campaign_slot,
    build_terms,
    contexts,
    refusal_of,
)
from tests.support.domain.decisions import decide

DAY = timedelta(days=1)
LIMIT = NoShowLimit(count=2, days=7)


def missed_days_ago(*days: int, **terms: object) -> UserContexts:
    """Return Ada with a no-show marked so many days before `NOW` in each of other slots."""
    others = []
    for number, day in enumerate(days):
        slot = build_campaign_slot(5, **terms)
        state, booking = book_place(
            with_facts(slot, id=SlotId(f"missed{number}")), booking_request("ada")
        )
        marked = HistoryEntry(
            NOW - day * DAY, UserId("olga"), BookingAction.NO_SHOW, BookingStatus.CONFIRMED
        )
        others.append(OtherBooking(booking.with_entry(marked), state.slot))
    return contexts(UserContext(UserId("ada"), (), 1, tuple(others)))


def test_the_pause_ends_some_days_after_the_latest_no_show() -> None:
    slot = build_campaign_slot(no_show_limit=LIMIT)
    users = missed_days_ago(6, 30, 7, no_show_limit=LIMIT)
    assert refusal_of(slot, "ada", users=users) == TooManyNoShows(slot.id, 3, NOW + DAY)


def test_the_pause_is_over_at_its_end() -> None:
    closes_at = NOW + 30 * DAY
    slot = with_facts(
        build_campaign_slot(no_show_limit=LIMIT, closes_at=closes_at), start=closes_at
    )
    users = missed_days_ago(6, 6, no_show_limit=LIMIT)
    until = NOW + DAY
    assert isinstance(refusal_of(slot, "ada", until - INSTANT, users), TooManyNoShows)
    _, outcome = decide(book, slot, booking_request("ada"), until, users=users)
    assert isinstance(outcome, Booked)


def test_fewer_no_shows_and_those_of_other_campaigns_have_no_consequence() -> None:
    slot = build_campaign_slot(no_show_limit=LIMIT)
    elsewhere = missed_days_ago(1, 1, no_show_limit=LIMIT, campaign_id=CampaignId("other"))
    for users in (missed_days_ago(1, no_show_limit=LIMIT), elsewhere):
        _, outcome = decide(book, slot, booking_request("ada"), NOW, users=users)
        assert isinstance(outcome, Booked)


def test_only_campaigns_with_the_limit_depend_on_other_bookings() -> None:
    assert build_terms(no_show_limit=LIMIT).depends_on_other_bookings
    assert not build_terms().depends_on_other_bookings
